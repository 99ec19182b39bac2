package drain

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// conflictDelay is the wait before another attempt when somebody else wrote the status at the same moment.
const conflictDelay = 200 * time.Millisecond

// Setup adds the controller to the manager. Workloads matter only while a worker is being drained.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=multikueueclusters;workloads,verbs=get;list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=multikueueclusters/status,verbs=patch
func Setup(mgr ctrl.Manager, r *Reconciler) error {
	draining := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return r.Draining() })
	err := ctrl.NewControllerManagedBy(mgr).
		Named("drain").
		For(&kueue.MultiKueueCluster{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&kueue.Workload{}, draining).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller that drains workers: %w", err)
	}
	return nil
}
