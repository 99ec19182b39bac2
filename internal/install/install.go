// Package install writes the manifests that follow from the table of kinds: what Ferry may do on workers and on the manager, and its webhooks.
package install

import (
	"bytes"
	"embed"
	"slices"
	"strings"
	"text/template"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/webhook"
)

//go:embed *.yaml.tmpl
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"join":   func(words []string) string { return strings.Join(words, ", ") },
	"status": func(words []string) string { return strings.Join(words, "/status, ") + "/status" },
	"path":   func(k *kinds.Kind) string { return webhook.Path(k.GVK) },
	"lower":  strings.ToLower,
}).ParseFS(files, "*.yaml.tmpl"))

// resources are the kinds of one API group, by their plural names.
type resources struct {
	Group   string
	Plurals []string
}

// Worker is the YAML of Ferry's account on a worker, with rights for these kinds only.
func Worker(rows []*kinds.Kind) string { return render("worker.yaml.tmpl", byGroup(rows)) }

// ManagerRole is the YAML of what Ferry may do on the manager, for these kinds.
func ManagerRole(rows []*kinds.Kind) string { return render("managerrole.yaml.tmpl", byGroup(rows)) }

// Webhooks is the YAML of Ferry's webhooks for those of the kinds that have a managedBy field.
func Webhooks(rows []*kinds.Kind) string {
	return render("webhooks.yaml.tmpl", slices.DeleteFunc(slices.Clone(rows), func(k *kinds.Kind) bool { return len(k.ManagedBy) == 0 }))
}

// render fails for a template that does not fit its data only, which the tests of this package would show.
func render(name string, data any) string {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return "# " + err.Error() + "\n"
	}
	return out.String()
}

// byGroup puts the kinds of a group together, in the order in which groups and kinds come first.
func byGroup(rows []*kinds.Kind) []resources {
	var groups []resources
	for _, k := range rows {
		at := slices.IndexFunc(groups, func(r resources) bool { return r.Group == k.GVK.Group })
		if at < 0 {
			groups, at = append(groups, resources{Group: k.GVK.Group}), len(groups)
		}
		groups[at].Plurals = append(groups[at].Plurals, k.Plural)
	}
	return groups
}
