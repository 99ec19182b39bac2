package app

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/controllers/dispatch"
	"ferry.dev/ferry/internal/controllers/lane"
	"ferry.dev/ferry/internal/controllers/quota"
	"ferry.dev/ferry/internal/controllers/worker"
	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
)

// wiring tells the controllers what happens on the workers.
type wiring struct {
	fleet    *fleet.Fleet
	jobs     *jobs.Jobs
	observer *observe.Observer
	dispatch *dispatch.Reconciler
	lanes    *lane.Lanes
	in       *inlet.Inlet[kinds.Ref]
	clusters *inlet.Inlet[reconcile.Request]
	quota    *quota.Reconciler
	quotas   *inlet.Inlet[reconcile.Request]
	waker    *waker
	byFit    atomic.Bool // a job's placement goes by what the workers' queues have
	log      logr.Logger
}

// changed is told every change in a worker's caches.
func (w *wiring) changed(name string, obj client.Object) {
	switch o := obj.(type) {
	case *kueue.LocalQueue:
		w.in.Add(w.dispatch.WaitingFor(context.Background(), o)...)
		w.quotas.Add(w.quota.Followed()...)
	case *metav1.PartialObjectMetadata:
		// Somebody's object came or went; it matters only under the name of a job.
		if ref := (kinds.Ref{Kind: o.GroupVersionKind().GroupKind().String(), Namespace: o.Namespace, Name: o.Name}); w.observer.Submitted(context.Background(), ref) {
			w.in.Add(ref)
		}
	default:
		ref, ours := kinds.CopyOf(obj)
		if !ours {
			w.unmarked(obj)
			return
		}
		w.observer.Memory.Saw(name, ref, obj)
		if wl, ok := obj.(*kueue.Workload); ok {
			w.observer.Memory.Capacity.SawCopy(name, wl, w.observer.Clock.Now())
		}
		w.lanes.Add(name, ref)
		w.in.Add(ref)
	}
}

// queues is told every change of what a worker's queues have to give.
func (w *wiring) queues(name string, now client.Object) {
	if more := w.observer.Memory.Capacity.Changed(name, now); more && w.byFit.Load() {
		w.waker.poke()
	}
	w.quotas.Add(w.quota.Followed()...)
}

// wantQueues has the workers' queues read, as a job's placement goes by what they have.
func (w *wiring) wantQueues() {
	w.byFit.Store(true)
	w.fleet.ReadQueues()
}

// unmarked lets what MultiKueue made, or seems to have, be decided about.
func (w *wiring) unmarked(obj client.Object) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		w.in.Add(kinds.RefOf(o))
	case *kueue.Workload:
		wl := &kueue.Workload{}
		if err := w.observer.Manager.Get(context.Background(), client.ObjectKeyFromObject(o), wl); err == nil {
			ref, _ := kinds.Owner(wl)
			w.in.Add(ref)
		}
	}
}

// state is told when a worker is connected, lost or removed, and when it starts or stops to serve a kind.
func (w *wiring) state(name string, s fleet.Status) {
	w.clusters.Add(worker.Request(name))
	w.quotas.Add(w.quota.Followed()...)
	if !s.Usable() {
		w.observer.Memory.Lost(name)
	}
	ctx := context.Background()
	w.in.Add(w.dispatch.Concerned(ctx, name)...)
	if s.Reach == fleet.Unknown {
		w.lanes.Close(name)
		return
	}
	w.lanes.Open(name)
	w.lanes.Add(name, w.held(ctx, name)...)
}

// held lists the jobs that a worker holds copies of.
func (w *wiring) held(ctx context.Context, name string) []kinds.Ref {
	conn, reachable := w.fleet.Conn(name)
	if !reachable {
		return nil
	}
	lists := []client.ObjectList{&kueue.WorkloadList{}}
	for _, gvk := range w.observer.Kinds.GVKs() {
		if served, _ := conn.Serves(gvk); served {
			jobs := &unstructured.UnstructuredList{}
			jobs.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			lists = append(lists, jobs)
		}
	}
	seen := map[kinds.Ref]bool{}
	for _, list := range lists {
		if err := conn.Reader().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			w.log.V(1).Info("Cannot list what a worker holds; it was lost meanwhile", "worker", name, "error", err.Error())
			continue
		}
		eachObject(list, func(obj client.Object) {
			if ref, ours := kinds.CopyOf(obj); ours {
				seen[ref] = true
			}
		})
	}
	refs := make([]kinds.Ref, 0, len(seen))
	for ref := range seen {
		refs = append(refs, ref)
	}
	return refs
}

// left names the jobs that a worker holds copies of, or is assigned or offered.
func (w *wiring) left(ctx context.Context, name string) []string {
	var jobs []string
	for _, ref := range w.held(ctx, name) {
		jobs = append(jobs, ref.String())
	}
	list := &kueue.WorkloadList{}
	if err := w.observer.Manager.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		w.log.Error(err, "Listing Workloads to see what a worker was given", "worker", name)
	}
	for i := range list.Items {
		wl := &list.Items[i]
		assigned := wl.Status.ClusterName != nil && *wl.Status.ClusterName == name
		if !observe.Finished(wl) && (assigned || slices.Contains(wl.Status.NominatedClusterNames, name)) {
			ref, _ := kinds.Owner(wl)
			jobs = append(jobs, ref.String())
		}
	}
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

func eachObject(list client.ObjectList, f func(client.Object)) {
	switch l := list.(type) {
	case *kueue.WorkloadList:
		for i := range l.Items {
			f(&l.Items[i])
		}
	case *unstructured.UnstructuredList:
		for i := range l.Items {
			f(&l.Items[i])
		}
	}
}
