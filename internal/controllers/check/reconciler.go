// Package check shows on each AdmissionCheck of ours whether it can send jobs to workers: its Active condition.
package check

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// conflictDelay is the wait before another attempt when someone else wrote the status at the same moment.
const conflictDelay = 200 * time.Millisecond

// Reconciler writes the Active condition of the AdmissionChecks with MultiKueue's controller name.
type Reconciler struct {
	Client client.Client // of the manager
}

// Reconcile implements reconcile.Reconciler. What is wrong with a check is a
// condition, not an error: errors are those of the manager's API alone.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	check := &kueue.AdmissionCheck{}
	err := r.Client.Get(ctx, req.NamespacedName, check)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading AdmissionCheck %s: %w", req.Name, err)
	case !ours(check):
		return reconcile.Result{}, nil
	}
	config, err := r.config(ctx, check)
	if err != nil {
		return reconcile.Result{}, err
	}
	clusters, err := r.clusters(ctx, config)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := check.DeepCopy()
	if !meta.SetStatusCondition(&check.Status.Conditions, condition(check, config, clusters)) {
		return reconcile.Result{}, nil
	}
	return r.write(ctx, before, check)
}

func ours(check *kueue.AdmissionCheck) bool {
	return check.Spec.ControllerName == kueue.MultiKueueControllerName
}

// config reads the config of a check; nil if the check names none that exists.
func (r *Reconciler) config(ctx context.Context, check *kueue.AdmissionCheck) (*kueue.MultiKueueConfig, error) {
	name, err := configName(check.Spec.Parameters)
	if err != nil {
		return nil, nil // condition says what is wrong with the reference
	}
	config := &kueue.MultiKueueConfig{}
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading MultiKueueConfig %s of AdmissionCheck %s: %w", name, check.Name, err)
	}
	return config, nil
}

// clusters reads those clusters of a config that exist.
func (r *Reconciler) clusters(ctx context.Context, config *kueue.MultiKueueConfig) (map[string]*kueue.MultiKueueCluster, error) {
	clusters := map[string]*kueue.MultiKueueCluster{}
	if config == nil {
		return clusters, nil
	}
	for _, name := range config.Spec.Clusters {
		cluster := &kueue.MultiKueueCluster{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading MultiKueueCluster %s of MultiKueueConfig %s: %w", name, config.Name, err)
		}
		clusters[name] = cluster
	}
	return clusters, nil
}

// write patches the status. The lock: a merge patch replaces the whole list,
// also a condition that someone else has just added.
func (r *Reconciler) write(ctx context.Context, before, check *kueue.AdmissionCheck) (reconcile.Result, error) {
	err := r.Client.Status().Patch(ctx, check, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("writing the Active condition of AdmissionCheck %s: %w", check.Name, err)
	}
	return reconcile.Result{}, nil
}
