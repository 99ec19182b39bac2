package app

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
)

// Table is the table of the kinds that the configuration turns on; it must be valid.
func Table(c *config.Configuration) *kinds.Table {
	var custom []kinds.Kind
	for _, e := range c.MultiKueue.ExternalFrameworks {
		gvk, _ := e.GVK()
		custom = append(custom, kinds.Custom(gvk, fieldsOf(e)))
	}
	table := kinds.NewTable(c.Integrations.Frameworks, custom...)
	if c.MultiKueue.PodNetworksConnected {
		return table.WithAddresses()
	}
	return table
}

func fieldsOf(e config.ExternalFramework) kinds.Fields {
	suspend, text := e.SuspendField()
	f := kinds.Fields{
		Suspended: text, PlainStatus: !*e.StatusSubresource, Plural: e.Resource,
		Drop: pathsOf(e.Drop), Flow: pathsOf(e.Flow),
	}
	if e.ManagedBy != config.ManagedByNone {
		f.ManagedBy = pathOf(e.ManagedBy)
	}
	if e.Suspend != "" {
		f.Suspend = pathOf(suspend)
	}
	return f
}

func pathsOf(texts []string) []kinds.Path {
	var paths []kinds.Path
	for _, text := range texts {
		paths = append(paths, pathOf(text))
	}
	return paths
}

// pathOf reads a path that the validation has read before.
func pathOf(text string) kinds.Path {
	path, _ := config.FieldPath(text)
	return path
}

func jobsOptions(mgr ctrl.Manager, o Options, table *kinds.Table) jobs.Options {
	return jobs.Options{
		Config: mgr.GetConfig(), HTTP: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		// Of the pods only the dispatched ones are Ferry's concern.
		Narrowed: map[schema.GroupVersionKind]labels.Selector{
			corev1.SchemeGroupVersion.WithKind("Pod"): labels.SelectorFromSet(labels.Set{kinds.GatedLabel: "true"}),
		},
		Lean:  table.Lean,
		Index: jobs.Index{Field: observe.JobIndex, Extract: observe.OwnerIndex},
		Kinds: table.GVKs(), Other: mgr.GetCache(), Log: o.Log.WithName("jobs"),
	}
}

// listen starts to take in what happens to the manager's jobs. Only who dispatches listens.
func (w *wiring) listen() {
	w.jobs.Listen(jobs.Listener{
		Changed: func(job *unstructured.Unstructured) { w.in.Add(w.dispatch.SawJob(job)) },
		Served:  w.kindServed,
	})
}

// kindServed decides anew about everything when a kind can be read on the manager, or no more: what happened to its
// jobs in between nobody saw.
func (w *wiring) kindServed(schema.GroupVersionKind) {
	ctx := context.Background()
	w.in.Add(w.dispatch.Unfinished(ctx)...)
	for _, name := range w.fleet.Workers() {
		w.lanes.Add(name, w.held(ctx, name)...)
	}
}
