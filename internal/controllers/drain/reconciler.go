// Package drain moves the jobs of workers that are being drained, a few at a time, and shows on each MultiKueueCluster how far that is.
package drain

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/reason"
)

// Condition is the condition of a MultiKueueCluster that is being drained.
const Condition = "Drained"

// Reconciler drains workers. Which job goes is decided here; that it goes is dispatch's affair.
type Reconciler struct {
	Client   client.Client // of the manager
	Observer *observe.Observer
	// AtOnce is how many jobs of a worker may be on their way.
	AtOnce int
	// Wake has jobs decided about anew.
	Wake func(refs ...kinds.Ref)

	mu       sync.Mutex
	draining map[string]bool
}

// Draining are the requests for all workers that are being drained.
func (r *Reconciler) Draining() []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := make([]reconcile.Request, 0, len(r.draining))
	for name := range r.draining {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &kueue.MultiKueueCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading MultiKueueCluster %s: %w", req.Name, err)
	}
	drains := err == nil && placement.FactsOf(cluster.Labels, cluster.Annotations).Draining
	r.note(req.Name, drains)
	switch {
	case err != nil:
		return reconcile.Result{}, nil
	case !drains:
		return r.tell(ctx, cluster, nil)
	}
	p, err := r.progress(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, ref := range placement.NextToMove(p.on, p.onTheirWay, r.AtOnce, r.Observer.Clock.Now()) {
		r.Observer.Memory.Move(req.Name, ref)
		r.Wake(ref)
		p.onTheirWay++
	}
	return r.tell(ctx, cluster, p.condition(cluster.Generation))
}

// note remembers whether a worker is being drained.
func (r *Reconciler) note(worker string, drains bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !drains:
		delete(r.draining, worker)
		r.Observer.Memory.Moved(worker, r.Observer.Memory.Moves(worker)...)
	case r.draining == nil:
		r.draining = map[string]bool{worker: true}
	default:
		r.draining[worker] = true
	}
}

// progress is how far a worker is drained: the jobs that it still has, and how many left it or are about to and have no
// other place yet.
type progress struct {
	on         []placement.Resident
	onTheirWay int
}

func (p progress) condition(generation int64) *metav1.Condition {
	c := &metav1.Condition{Type: Condition, Status: metav1.ConditionFalse, Reason: "Draining", ObservedGeneration: generation}
	kept := 0
	for _, r := range p.on {
		if r.Keeps {
			kept++
		}
	}
	c.Message = reason.DrainProgress(len(p.on), p.onTheirWay, kept)
	if len(p.on) == 0 && p.onTheirWay == 0 {
		c.Status, c.Reason = metav1.ConditionTrue, "Drained"
	}
	return c
}

// progress looks at the Workloads that the worker has, and at those of jobs that were told to leave it.
func (r *Reconciler) progress(ctx context.Context, worker string) (progress, error) {
	told := r.Observer.Memory.Moves(worker)
	there, waits, err := r.workloads(ctx, worker, told)
	if err != nil {
		return progress{}, err
	}
	p := progress{}
	for ref, wls := range there {
		resident, err := r.resident(ctx, ref, wls)
		if err != nil {
			return p, err
		}
		resident.Moves = slices.Contains(told, ref)
		p.on = append(p.on, resident)
	}
	for _, ref := range told {
		if len(there[ref]) > 0 || waits[ref] {
			p.onTheirWay++
			continue
		}
		r.Observer.Memory.Moved(worker, ref) // it has a place, or is no more
	}
	return p, nil
}

// workloads are the unfinished ones that a worker has, by their jobs, and which of the jobs that left it have no other
// place yet.
func (r *Reconciler) workloads(ctx context.Context, worker string, left []kinds.Ref) (there map[kinds.Ref][]*kueue.Workload, waits map[kinds.Ref]bool, err error) {
	list := &kueue.WorkloadList{}
	if err := r.Observer.Manager.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Workloads to drain worker %s: %w", worker, err)
	}
	there, waits = map[kinds.Ref][]*kueue.Workload{}, map[kinds.Ref]bool{}
	for i := range list.Items {
		wl := &list.Items[i]
		ref, _ := kinds.Owner(wl)
		switch {
		case observe.Finished(wl):
		case wl.Status.ClusterName != nil && *wl.Status.ClusterName == worker:
			there[ref] = append(there[ref], wl)
		case slices.Contains(left, ref) && !isPlaced(wl):
			waits[ref] = true
		}
	}
	return there, waits, nil
}

func isPlaced(wl *kueue.Workload) bool {
	return wl.Status.ClusterName != nil && meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)
}

// resident is a job that the worker has, by those Workloads.
func (r *Reconciler) resident(ctx context.Context, ref kinds.Ref, wls []*kueue.Workload) (placement.Resident, error) {
	resident := placement.Resident{Job: ref}
	for _, wl := range wls {
		for _, set := range wl.Spec.PodSets {
			resident.Pods += set.Count
		}
		if c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted); c != nil && (resident.Since.IsZero() || c.LastTransitionTime.Time.Before(resident.Since)) {
			resident.Since = c.LastTransitionTime.Time
		}
	}
	said, err := r.Observer.JobSays(ctx, ref, placement.KeepAnnotation)
	resident.Keeps = said == "true"
	return resident, err
}

// tell writes the condition where it differs; nil: there should be none.
func (r *Reconciler) tell(ctx context.Context, cluster *kueue.MultiKueueCluster, condition *metav1.Condition) (reconcile.Result, error) {
	before := cluster.DeepCopy()
	changed := false
	if condition == nil {
		changed = meta.RemoveStatusCondition(&cluster.Status.Conditions, Condition)
	} else {
		changed = meta.SetStatusCondition(&cluster.Status.Conditions, *condition)
	}
	if !changed {
		return reconcile.Result{}, nil
	}
	// The lock: a merge patch replaces the whole list, also a condition that somebody else has just added.
	err := r.Client.Status().Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the condition %s of MultiKueueCluster %s: %w", Condition, cluster.Name, err)
	}
	return reconcile.Result{}, nil
}
