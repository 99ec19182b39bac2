package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
)

// concurrency is how many jobs are decided about at once.
const concurrency = 8

type queue = workqueue.TypedRateLimitingInterface[kinds.Ref]

// Setup adds the controller to the manager. In brings requests from elsewhere:
// of the manager's jobs, from the workers' lanes and on changes of the fleet.
// Listen is called when the controller starts, to be told of the jobs.
func Setup(mgr ctrl.Manager, r *Reconciler, in *inlet.Inlet[kinds.Ref], listen func()) error {
	c, err := controller.NewTyped("dispatch", mgr, controller.TypedOptions[kinds.Ref]{Reconciler: r, MaxConcurrentReconciles: concurrency})
	if err != nil {
		return fmt.Errorf("adding the dispatch controller: %w", err)
	}
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	sources := []source.TypedSource[kinds.Ref]{
		in,
		source.TypedFunc[kinds.Ref](func(context.Context, queue) error { listen(); return nil }),
		source.TypedKind(mgr.GetCache(), &kueue.Workload{}, each(r.sawWorkload)),
		source.TypedKind(mgr.GetCache(), &kueue.AdmissionCheck{}, everyJob[*kueue.AdmissionCheck](r)),
		source.TypedKind(mgr.GetCache(), &kueue.MultiKueueConfig{}, everyJob[*kueue.MultiKueueConfig](r)),
		source.TypedKind(mgr.GetCache(), &kueue.MultiKueueCluster{}, onSaid(func(ctx context.Context, c *kueue.MultiKueueCluster) []kinds.Ref { return r.Concerned(ctx, c.Name) })),
		source.TypedKind(mgr.GetCache(), &kueue.LocalQueue{}, onSaid(r.WaitingFor)),
		source.TypedKind(mgr.GetCache(), namespaces, onSaid(func(ctx context.Context, n *metav1.PartialObjectMetadata) []kinds.Ref {
			return r.waitingIn(ctx, n.Name)
		})),
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("adding a watch to the dispatch controller: %w", err)
		}
	}
	return nil
}

func (r *Reconciler) sawWorkload(wl *kueue.Workload) kinds.Ref {
	ref, _ := kinds.Owner(wl)
	r.Observer.Memory.Saw(observe.Manager, ref, wl)
	return ref
}

// SawJob notes what the cache shows of a job, and returns its reference.
func (r *Reconciler) SawJob(job *unstructured.Unstructured) kinds.Ref {
	ref := kinds.RefOf(job)
	r.Observer.Memory.Saw(observe.Manager, ref, job)
	return ref
}

// each queues the job that a changed object belongs to.
func each[T client.Object](saw func(T) kinds.Ref) handler.TypedEventHandler[T, kinds.Ref] {
	return handler.TypedFuncs[T, kinds.Ref]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q queue) { q.Add(saw(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q queue) { q.Add(saw(e.ObjectNew)) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q queue) { q.Add(saw(e.Object)) },
	}
}

// everyJob queues all unfinished jobs when what they are dispatched by is changed.
func everyJob[T client.Object](r *Reconciler) handler.TypedEventHandler[T, kinds.Ref] {
	add := func(ctx context.Context, q queue) {
		for _, ref := range r.Unfinished(ctx) {
			q.Add(ref)
		}
	}
	return handler.TypedFuncs[T, kinds.Ref]{
		CreateFunc: func(ctx context.Context, _ event.TypedCreateEvent[T], q queue) { add(ctx, q) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				add(ctx, q)
			}
		},
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[T], q queue) { add(ctx, q) },
	}
}

// onSaid queues jobs when somebody says something else of where jobs may go, by labels and annotations.
func onSaid[T client.Object](concerned func(context.Context, T) []kinds.Ref) handler.TypedEventHandler[T, kinds.Ref] {
	return handler.TypedFuncs[T, kinds.Ref]{
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			if maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) && maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				return
			}
			for _, ref := range concerned(ctx, e.ObjectNew) {
				q.Add(ref)
			}
		},
	}
}

// Unfinished lists the jobs of all Workloads that are not finished.
func (r *Reconciler) Unfinished(ctx context.Context) []kinds.Ref {
	return r.pick(ctx, func(*kueue.Workload) bool { return true })
}

// Concerned lists the jobs to which it may matter that a worker comes or goes: those that
// have none, and those that have this one. What else it holds goes through its lane.
func (r *Reconciler) Concerned(ctx context.Context, worker string) []kinds.Ref {
	return r.pick(ctx, func(wl *kueue.Workload) bool {
		return wl.Status.ClusterName == nil || *wl.Status.ClusterName == worker
	})
}

// WaitingFor lists the jobs that have no worker, to which a queue on one may matter.
func (r *Reconciler) WaitingFor(ctx context.Context, queue *kueue.LocalQueue) []kinds.Ref {
	return r.pick(ctx, func(wl *kueue.Workload) bool {
		return wl.Status.ClusterName == nil && wl.Namespace == queue.Namespace && string(wl.Spec.QueueName) == queue.Name
	})
}

// waitingIn lists the jobs of a namespace that have no worker.
func (r *Reconciler) waitingIn(ctx context.Context, namespace string) []kinds.Ref {
	return r.pick(ctx, func(wl *kueue.Workload) bool { return wl.Status.ClusterName == nil && wl.Namespace == namespace })
}

// NextInLine lists the jobs that have quota on the manager and no worker: the most important first, then the oldest, and
// no more than most. It costs one pass over the cached Workloads.
func (r *Reconciler) NextInLine(ctx context.Context, most int) []kinds.Ref {
	var line []*kueue.Workload
	r.pick(ctx, func(wl *kueue.Workload) bool {
		if wl.Status.ClusterName == nil && wl.Status.Admission != nil {
			line = append(line, wl)
		}
		return false
	})
	slices.SortFunc(line, func(a, b *kueue.Workload) int {
		return cmp.Or(cmp.Compare(ptr.Deref(b.Spec.Priority, 0), ptr.Deref(a.Spec.Priority, 0)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	refs := make([]kinds.Ref, 0, min(len(line), most))
	for _, wl := range line[:min(len(line), most)] {
		ref, _ := kinds.Owner(wl)
		refs = append(refs, ref)
	}
	return refs
}

// pick lists the jobs of those unfinished Workloads that are wanted, from the cache.
func (r *Reconciler) pick(ctx context.Context, wanted func(*kueue.Workload) bool) []kinds.Ref {
	list := &kueue.WorkloadList{}
	if err := r.Observer.Manager.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Workloads to decide anew about jobs")
		return nil
	}
	var refs []kinds.Ref
	for i := range list.Items {
		if wl := &list.Items[i]; !observe.Finished(wl) && wanted(wl) {
			ref, _ := kinds.Owner(wl)
			refs = append(refs, ref)
		}
	}
	return refs
}
