package operator

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
)

// All, as a name, stands for every operator.
const All = "all"

// Names are the names of all operators.
func Names() []string {
	names := make([]string, 0, len(rows))
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

// Find gives the row of that name. The error lists the names that there are.
func Find(name string) (Row, error) {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, fmt.Errorf("no operator %q: there are %s, and %q", name, strings.Join(Names(), ", "), All)
	}
	return rows[i], nil
}

// Resolve gives the rows of the named operators, each once, after the rows of those that it needs.
func Resolve(names ...string) ([]Row, error) {
	var found []Row
	var add func(name string) error
	add = func(name string) error {
		row, err := Find(name)
		if err != nil {
			return err
		}
		for _, need := range row.Needs {
			if err := add(need); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(found, func(r Row) bool { return r.Name == name }) {
			found = append(found, row)
		}
		return nil
	}
	if slices.Contains(names, All) {
		names = Names()
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// builtin are the frameworks of Kueue that need no operator.
var builtin = []string{"batch/job", "pod", "deployment", "statefulset"}

// Frameworks are Kueue's frameworks to turn on: those asked for, where "all" stands for every one that has a controller
// in Kubernetes or in this table, and those of the given rows.
func Frameworks(asked []string, with []Row) []string {
	var names []string
	add := func(more ...string) {
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range asked {
		if name != All {
			add(name)
			continue
		}
		add(builtin...)
		for _, row := range rows {
			add(row.Frameworks...)
		}
	}
	for _, row := range with {
		add(row.Frameworks...)
	}
	return names
}

// Fill makes the arguments, the environment and the config of an operator in its place.
func (r Row) Fill(at Place) (args, env []string, config string, err error) {
	if args, err = fillAll(r.Args, at); err != nil {
		return nil, nil, "", fmt.Errorf("arguments of %s: %w", r.Name, err)
	}
	if env, err = fillAll(r.Env, at); err != nil {
		return nil, nil, "", fmt.Errorf("environment of %s: %w", r.Name, err)
	}
	if config, err = fill(r.Config, at); err != nil {
		return nil, nil, "", fmt.Errorf("config of %s: %w", r.Name, err)
	}
	return args, env, config, nil
}

func fillAll(texts []string, at Place) ([]string, error) {
	filled := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if filled[i], err = fill(text, at); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

func fill(text string, at Place) (string, error) {
	t, err := template.New("").Parse(text)
	if err != nil {
		return "", fmt.Errorf("%q is no template: %w", text, err)
	}
	var out strings.Builder
	if err := t.Execute(&out, at); err != nil {
		return "", fmt.Errorf("fill in %q: %w", text, err)
	}
	return out.String(), nil
}

// Narrow puts the row's selector on one of its webhooks.
func (r Row) Narrow(webhook map[string]any) {
	name, _ := webhook["name"].(string)
	label, ok := r.Selectors[name]
	if !ok {
		return
	}
	webhook["objectSelector"] = map[string]any{
		"matchExpressions": []any{map[string]any{"key": label, "operator": "Exists"}},
	}
}
