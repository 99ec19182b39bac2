// Command dispatcher is an external dispatcher in one page: it nominates one worker for all jobs of a queue.
package main

import (
	"context"
	"flag"
	"hash/fnv"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// dispatcher does for `multiKueue.dispatcherName: example.com/by-queue` what Ferry (or stock MultiKueue) leaves to it: it
// chooses by the hash of the queue's name.
type dispatcher struct{ client.Client }

func main() {
	flag.Parse() // --kubeconfig
	scheme := runtime.NewScheme()
	utilruntime.Must(kueue.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	utilruntime.Must(err)
	utilruntime.Must(ctrl.NewControllerManagedBy(mgr).For(&kueue.Workload{}).Complete(&dispatcher{mgr.GetClient()}))
	if mgr.Start(ctrl.SetupSignalHandler()) != nil {
		os.Exit(1)
	}
}

// Reconcile nominates a worker for a Workload that has quota on the manager, our check Pending, and no nomination yet.
func (d *dispatcher) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	wl := &kueue.Workload{}
	if err := d.Get(ctx, r.NamespacedName, wl); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) || wl.Status.ClusterName != nil || len(wl.Status.NominatedClusterNames) > 0 {
		return ctrl.Result{}, nil
	}
	for _, state := range wl.Status.AdmissionChecks {
		workers, err := d.workers(ctx, string(state.Name))
		if err != nil || len(workers) == 0 || state.State != kueue.CheckStatePending {
			continue
		}
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(wl.Namespace + "/" + string(wl.Spec.QueueName)))
		before := wl.DeepCopy()
		wl.Status.NominatedClusterNames = []string{workers[hash.Sum32()%uint32(len(workers))]}
		// The lock: whoever changed the Workload meanwhile, we look at it anew.
		return ctrl.Result{}, d.Status().Patch(ctx, wl, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner("by-queue"))
	}
	return ctrl.Result{}, nil
}

// workers are those of the MultiKueueConfig that a check names.
func (d *dispatcher) workers(ctx context.Context, name string) ([]string, error) {
	check, config := &kueue.AdmissionCheck{}, &kueue.MultiKueueConfig{}
	if err := d.Get(ctx, client.ObjectKey{Name: name}, check); err != nil || check.Spec.ControllerName != kueue.MultiKueueControllerName || check.Spec.Parameters == nil {
		return nil, err
	}
	err := d.Get(ctx, client.ObjectKey{Name: check.Spec.Parameters.Name}, config)
	return config.Spec.Clusters, err
}
