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

// rights are the kinds by what Ferry does with their objects.
type rights struct {
	Made     []resources // on a worker
	Read     []resources // on the manager
	Mirrored []resources // on the manager: their status is written
	Patched  []resources // on the manager: their status is written, and is no subresource
	// PodsRead tells that pods are only read on a worker; Gated that they are kept from running on the manager.
	PodsRead, Gated bool
	Managed         []*kinds.Kind // by Ferry, which their webhooks see to
}

func rightsFor(rows []*kinds.Kind) rights {
	var r rights
	for _, k := range rows {
		r.Made = with(r.Made, k)
		r.Read = with(r.Read, k)
		switch {
		case k.PlainStatus:
			r.Patched = with(r.Patched, k)
		case k.Mirrored():
			r.Mirrored = with(r.Mirrored, k)
		}
		if len(k.ManagedBy) > 0 {
			r.Managed = append(r.Managed, k)
		}
	}
	for _, k := range rows {
		isPod := k.GVK == k.PodKind().GVK
		r.Gated = r.Gated || isPod || k.Pods
		if k.Pods {
			r.Read, r.Mirrored = with(r.Read, k.PodKind()), with(r.Mirrored, k.PodKind())
			r.PodsRead = r.PodsRead || !has(r.Made, k.PodKind())
		}
	}
	return r
}

// Worker is the YAML of Ferry's account on a worker, with rights for these kinds only.
func Worker(rows []*kinds.Kind) string { return render("worker.yaml.tmpl", rightsFor(rows)) }

// ManagerRole is the YAML of what Ferry may do on the manager, for these kinds.
func ManagerRole(rows []*kinds.Kind) string {
	return render("managerrole.yaml.tmpl", rightsFor(rows))
}

// Webhooks is the YAML of Ferry's webhooks for these kinds: those that keep their jobs from running on the manager.
func Webhooks(rows []*kinds.Kind) string { return render("webhooks.yaml.tmpl", rightsFor(rows)) }

// render fails for a template that does not fit its data only, which the tests of this package would show.
func render(name string, data any) string {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return "# " + err.Error() + "\n"
	}
	return out.String()
}

// with adds a kind to those of its group, in the order in which groups and kinds come first.
func with(groups []resources, k *kinds.Kind) []resources {
	if has(groups, k) {
		return groups
	}
	at := slices.IndexFunc(groups, func(r resources) bool { return r.Group == k.GVK.Group })
	if at < 0 {
		groups, at = append(groups, resources{Group: k.GVK.Group}), len(groups)
	}
	groups[at].Plurals = append(groups[at].Plurals, k.Plural)
	return groups
}

func has(groups []resources, k *kinds.Kind) bool {
	return slices.ContainsFunc(groups, func(r resources) bool {
		return r.Group == k.GVK.Group && slices.Contains(r.Plurals, k.Plural)
	})
}
