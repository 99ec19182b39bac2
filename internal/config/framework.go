package config

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	kindForm      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	versionForm   = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	almostVersion = regexp.MustCompile(`^[vV]?[0-9]`)
)

// Kinds that are often dispatched; their names cannot be guessed from those of their CRDs.
var wellKnown = []string{"PipelineRun.v1.tekton.dev", "TaskRun.v1.tekton.dev", "Workflow.v1alpha1.argoproj.io", "SparkApplication.v1beta2.sparkoperator.k8s.io"}

// GVK is the kind that the name stands for; false when it is not Kind.version.group.
func (e ExternalFramework) GVK() (schema.GroupVersionKind, bool) {
	gvk, _ := schema.ParseKindArg(e.Name)
	if gvk == nil || wrongName(*gvk) != "" {
		return schema.GroupVersionKind{}, false
	}
	return *gvk, true
}

// wrongName says what cannot be a kind's name in Kind.version.group; empty if all can. Names of CRDs and names without
// a version would pass for three parts otherwise, as dots part groups too.
func wrongName(gvk schema.GroupVersionKind) string {
	switch {
	case !kindForm.MatchString(gvk.Kind):
		return "a kind starts with a capital letter"
	case !versionForm.MatchString(gvk.Version):
		return "a version looks like v1 or v1beta1"
	case !strings.Contains(gvk.Group, ".") || len(content.IsDNS1123Subdomain(gvk.Group)) > 0:
		return "a group is a domain, such as tekton.dev"
	}
	return ""
}

// misnamed says what is wrong with a name that stands for no kind, and what may have been meant.
func misnamed(name string, known []string) string {
	wrong := "must be Kind.version.group"
	if gvk, _ := schema.ParseKindArg(name); gvk != nil {
		wrong += " (" + wrongName(*gvk) + ")"
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("./ ,=", r) })
	for _, framework := range known {
		group, kind, _ := strings.Cut(framework, "/")
		if kind != "" && slices.ContainsFunc(words, isKind(kind)) && strings.Contains(name, group) {
			return wrong + "; the kind is built in: name " + framework + " in integrations.frameworks"
		}
	}
	if meant := meantName(words); meant != "" {
		return wrong + "; did you mean " + meant + "?"
	}
	return wrong + ", such as PipelineRun.v1.tekton.dev"
}

// meantName takes a name for that of a CRD, or for one that lacks its version; empty when it can be neither.
func meantName(words []string) string {
	for _, name := range wellKnown {
		kind, _, _ := strings.Cut(name, ".")
		if slices.ContainsFunc(words, isKind(kind)) {
			return name
		}
	}
	version := "v1"
	if i := slices.IndexFunc(words, versionForm.MatchString); i >= 0 {
		version, words = words[i], slices.Delete(slices.Clone(words), i, i+1)
	}
	if len(words) < 3 || almostVersion.MatchString(words[1]) {
		return ""
	}
	kind := words[0]
	if !kindForm.MatchString(kind) {
		kind = strings.ToUpper(kind[:1]) + singular(kind)[1:]
	}
	meant := ExternalFramework{Name: strings.Join(append([]string{kind, version}, words[1:]...), ".")}
	if _, valid := meant.GVK(); !valid {
		return ""
	}
	return meant.Name
}

// isKind finds a kind by its name or its plural, in capital letters or not.
func isKind(kind string) func(string) bool {
	return func(word string) bool {
		return strings.EqualFold(word, kind) || strings.EqualFold(singular(word), kind)
	}
}

func singular(word string) string {
	if stem, found := strings.CutSuffix(word, "ies"); found && stem != "" {
		return stem + "y"
	}
	for _, hissing := range []string{"s", "x", "ch", "sh"} {
		if stem, found := strings.CutSuffix(word, hissing+"es"); found {
			return stem + hissing
		}
	}
	if stem := strings.TrimSuffix(word, "s"); stem != "" {
		return stem
	}
	return word
}

// builtIn is the framework of Kueue's that an entry names; empty for kinds that are not built in.
func (e ExternalFramework) builtIn(known []string) string {
	gvk, _ := schema.ParseKindArg(e.Name)
	if gvk == nil {
		return ""
	}
	i := slices.IndexFunc(known, func(framework string) bool { return isBuiltIn(*gvk, framework) })
	if i < 0 {
		return ""
	}
	return known[i]
}

// isBuiltIn goes by Kueue's habit of naming a framework group/kind, and by the kind alone for Kubernetes' own but Job.
func isBuiltIn(gvk schema.GroupVersionKind, framework string) bool {
	kind := strings.ToLower(gvk.Kind)
	return kindForm.MatchString(gvk.Kind) && versionForm.MatchString(gvk.Version) &&
		(framework == gvk.Group+"/"+kind || (framework == kind && (gvk.Group == "" || gvk.Group == "apps")))
}

// isNameOnly tells that an entry, after its defaults were set, has nothing that Kueue's own form lacks.
func (e ExternalFramework) isNameOnly() bool {
	return e.ManagedBy == DefaultManagedBy && *e.StatusSubresource && e.Suspend == "" && e.Resource == "" && len(e.Drop) == 0 && len(e.Flow) == 0
}

// turnOnNamed takes entries of externalFrameworks that name a built-in kind, as Kueue allows where the kind is off in
// integrations.frameworks, for having it on there. It returns a note for each.
func (c *Configuration) turnOnNamed(known []string) []string {
	var notes []string
	c.MultiKueue.ExternalFrameworks = slices.DeleteFunc(c.MultiKueue.ExternalFrameworks, func(e ExternalFramework) bool {
		framework := e.builtIn(known)
		if framework == "" {
			return false
		}
		notes = append(notes, "multiKueue.externalFrameworks: "+e.Name+" is built in: taken for "+framework+" in integrations.frameworks")
		if !slices.Contains(c.Integrations.Frameworks, framework) {
			c.Integrations.Frameworks = append(c.Integrations.Frameworks, framework)
		}
		return true
	})
	return notes
}
