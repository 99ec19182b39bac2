package quota

import (
	"context"
	"fmt"
	"maps"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/inlet"
)

// Setup adds the controller to the manager. What happens on the workers comes by the inlet.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;localqueues;admissionchecks;multikueueconfigs;multikueueclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues;clusterqueues/status,verbs=patch
func Setup(mgr ctrl.Manager, r *Reconciler, workers *inlet.Inlet[reconcile.Request]) error {
	reread := handler.EnqueueRequestsFromMapFunc(all(mgr.GetClient()))
	specs := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("quota").
		For(&kueue.ClusterQueue{}, specs).
		Watches(&kueue.AdmissionCheck{}, reread, specs).
		Watches(&kueue.MultiKueueConfig{}, reread, specs).
		Watches(&kueue.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(ofLocalQueue), specs).
		Watches(&kueue.MultiKueueCluster{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return r.Followed() }),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: annotated})).
		WatchesRawSource(workers).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of the manager's quota: %w", err)
	}
	return nil
}

// annotated tells whether a cluster has other annotations than before.
func annotated(e event.UpdateEvent) bool {
	return !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

func ofLocalQueue(_ context.Context, obj client.Object) []reconcile.Request {
	if local, ok := obj.(*kueue.LocalQueue); ok {
		return []reconcile.Request{request(string(local.Spec.ClusterQueue))}
	}
	return nil
}

// all queues every ClusterQueue with checks: which of them a change of the setup concerns, a look tells.
func all(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		queues := &kueue.ClusterQueueList{}
		if err := reader.List(ctx, queues, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing ClusterQueues to see whom a change concerns", "changed", changed.GetName())
			return nil
		}
		var requests []reconcile.Request
		for i := range queues.Items {
			if queues.Items[i].Spec.AdmissionChecksStrategy != nil {
				requests = append(requests, request(queues.Items[i].Name))
			}
		}
		return requests
	}
}
