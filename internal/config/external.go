package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Words of ExternalFramework.ManagedBy.
const (
	DefaultManagedBy = "spec.managedBy"
	ManagedByNone    = "none"
)

func (e *ExternalFramework) setDefaults() {
	e.ManagedBy = cmp.Or(e.ManagedBy, DefaultManagedBy)
	e.StatusSubresource = cmp.Or(e.StatusSubresource, new(true))
}

// SuspendField is the field to set on copies, and the text to set it to; an empty text, of a path without "=", stands for true.
func (e ExternalFramework) SuspendField() (path, text string) {
	path, text, _ = strings.Cut(e.Suspend, "=")
	return path, text
}

func checkExternal(at *field.Path, external []ExternalFramework, known []string) field.ErrorList {
	var errs field.ErrorList
	seen := map[schema.GroupKind]bool{}
	for n, e := range external {
		here := at.Index(n)
		if err := e.checkName(here.Child("name"), known); err != nil {
			errs = append(errs, err)
		}
		if gvk, _ := schema.ParseKindArg(e.Name); gvk != nil {
			if seen[gvk.GroupKind()] {
				errs = append(errs, field.Duplicate(here.Child("name"), e.Name))
			}
			seen[gvk.GroupKind()] = true
		}
		errs = append(errs, e.validate(here)...)
	}
	return errs
}

func (e ExternalFramework) checkName(at *field.Path, known []string) *field.Error {
	if framework := e.builtIn(known); framework != "" {
		if e.isNameOnly() {
			return nil
		}
		return field.Invalid(at, e.Name, fmt.Sprintf("is built in, and how it is dispatched is fixed: leave the name alone here, or name %s in integrations.frameworks", framework))
	}
	gvk, valid := e.GVK()
	switch {
	case !valid:
		return field.Invalid(at, e.Name, misnamed(e.Name, known))
	case strings.HasSuffix(gvk.Group, "kueue.x-k8s.io"):
		return field.Invalid(at, e.Name, "is one of Kueue's own kinds, which are no jobs")
	}
	return nil
}

// validate checks everything but the name.
func (e ExternalFramework) validate(at *field.Path) field.ErrorList {
	c := pathCheck{used: map[string][]string{}}
	if e.ManagedBy != ManagedByNone {
		c.add(at.Child("managedBy"), e.ManagedBy, func(p []string) string {
			if isSpec(p) || isLabelOrAnnotation(p) {
				return ""
			}
			return "must lead below spec, or to a label or an annotation, or be " + ManagedByNone
		})
	}
	if path, _ := e.SuspendField(); e.Suspend != "" {
		c.add(at.Child("suspend"), path, func(p []string) string { return cmp.Or(notBelowSpec(p), e.wrongSuspendText()) })
	}
	for n, path := range e.Drop {
		c.add(at.Child("drop").Index(n), path, notDroppable)
	}
	for n, path := range e.Flow {
		c.add(at.Child("flow").Index(n), path, notBelowSpec)
	}
	if e.Resource != "" {
		c.errs = append(c.errs, check(at.Child("resource"), e.Resource, content.IsDNS1123Label)...)
	}
	return c.errs
}

// wrongSuspendText: what is set is a text, which no field for true, false or a number takes.
func (e ExternalFramework) wrongSuspendText() string {
	_, text, given := strings.Cut(e.Suspend, "=")
	_, notNumber := strconv.ParseFloat(text, 64)
	switch {
	case given && strings.TrimSpace(text) == "":
		return "a text is missing after =: for the value true write the path alone"
	case strings.EqualFold(text, "true"), strings.EqualFold(text, "false"), notNumber == nil:
		return "would set a text: for the value true write the path alone; else only texts can be set, such as path=Pending"
	}
	return ""
}

// pathCheck gathers what is wrong with the paths of one kind; two that overlap would undo each other.
type pathCheck struct {
	errs field.ErrorList
	used map[string][]string // where a path stands, and what it is
}

func (c *pathCheck) add(at *field.Path, text string, wrong func([]string) string) {
	path, err := FieldPath(text)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(at, text, err.Error()))
		return
	}
	if why := wrong(path); why != "" {
		c.errs = append(c.errs, field.Invalid(at, text, why))
		return
	}
	var clashes []string
	for other, used := range c.used {
		if begins(path, used) || begins(used, path) {
			clashes = append(clashes, other)
		}
	}
	if len(clashes) > 0 {
		c.errs = append(c.errs, field.Invalid(at, text, "overlaps with "+slices.Min(clashes)))
		return
	}
	c.used[at.String()] = path
}

func begins(path, with []string) bool {
	return len(path) >= len(with) && slices.Equal(path[:len(with)], with)
}

func notBelowSpec(p []string) string {
	if isSpec(p) {
		return ""
	}
	return "must lead below spec"
}

func isSpec(p []string) bool { return len(p) > 1 && p[0] == "spec" }

func isLabelOrAnnotation(p []string) bool {
	return len(p) == 3 && p[0] == "metadata" && (p[1] == "labels" || p[1] == "annotations") && !isReserved(p[2]) && len(content.IsLabelKey(p[2])) == 0
}

// isReserved tells the labels and annotations by which Kueue and Ferry know their objects.
func isReserved(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "ferry.dev" || strings.HasSuffix(prefix, "kueue.x-k8s.io")
}

func notDroppable(p []string) string {
	switch {
	case p[0] == "apiVersion" || p[0] == "kind":
		return "every object needs it"
	case p[0] == "status":
		return "the status is never copied to a worker"
	case len(p) == 1 && p[0] == "spec":
		return "must lead below spec"
	case p[0] == "metadata" && !isLabelOrAnnotation(p):
		return "of the metadata only single labels and annotations can be left out, and none of Kueue's or Ferry's"
	}
	return ""
}
