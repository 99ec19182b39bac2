package check

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Setup adds the controller to the manager.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=admissionchecks;multikueueconfigs;multikueueclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=admissionchecks/status,verbs=patch
func Setup(mgr ctrl.Manager) error {
	reread := handler.EnqueueRequestsFromMapFunc(all(mgr.GetClient()))
	err := ctrl.NewControllerManagedBy(mgr).
		Named("check").
		For(&kueue.AdmissionCheck{}, builder.WithPredicates(predicate.NewPredicateFuncs(isOurs))).
		Watches(&kueue.MultiKueueConfig{}, reread, builder.WithPredicates(predicate.Funcs{UpdateFunc: renamed})).
		Watches(&kueue.MultiKueueCluster{}, reread, builder.WithPredicates(predicate.Funcs{UpdateFunc: turned})).
		Complete(&Reconciler{Client: mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("adding the controller of AdmissionChecks: %w", err)
	}
	return nil
}

func isOurs(object client.Object) bool {
	check, ok := object.(*kueue.AdmissionCheck)
	return ok && ours(check)
}

// renamed tells whether a config names other clusters than before. Generations
// say less: an object and its successor of the same name both start at 1.
func renamed(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*kueue.MultiKueueConfig)
	now, alsoOK := e.ObjectNew.(*kueue.MultiKueueConfig)
	return ok && alsoOK && !slices.Equal(before.Spec.Clusters, now.Spec.Clusters)
}

// turned tells whether a cluster became active or ceased to be.
func turned(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*kueue.MultiKueueCluster)
	now, alsoOK := e.ObjectNew.(*kueue.MultiKueueCluster)
	return ok && alsoOK && active(before) != active(now)
}

// all queues every check of ours. There are few, and looking at one costs some
// reads of the cache: cheaper than an index of who uses what.
func all(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		checks := &kueue.AdmissionCheckList{}
		if err := reader.List(ctx, checks); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing AdmissionChecks to see whom a change concerns", "changed", changed.GetName())
			return nil
		}
		var requests []reconcile.Request
		for i := range checks.Items {
			if ours(&checks.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&checks.Items[i])})
			}
		}
		return requests
	}
}
