package quota

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/quota"
	"ferry.dev/ferry/internal/reason"
)

var (
	localQueueKind   = kueue.SchemeGroupVersion.WithKind("LocalQueue")
	clusterQueueKind = kueue.SchemeGroupVersion.WithKind("ClusterQueue")
	flavorKind       = kueue.SchemeGroupVersion.WithKind("ResourceFlavor")
)

// ask reads all that a decision about a queue depends on, and when to look again without an event; zero: no need.
func (r *Reconciler) ask(ctx context.Context, cq *kueue.ClusterQueue) (asked quota.Request, again time.Duration, err error) {
	asked.Queue = cq
	check, err := r.checkOf(ctx, cq)
	if check == nil || err != nil {
		return asked, 0, err
	}
	asked.Dispatched = true
	config, err := r.configOf(ctx, check)
	switch {
	case err != nil:
		return asked, 0, err
	case config == nil:
		asked.Trouble = reason.QuotaConfigMissing()
		return asked, 0, nil
	}
	asked.Automated = config.Spec.QuotaManagement != nil && *config.Spec.QuotaManagement == kueue.QuotaManagementAutomated
	if !asked.Automated {
		return asked, 0, nil
	}
	again, err = r.readWorkers(ctx, &asked, config.Spec.Clusters)
	return asked, again, err
}

// readWorkers reads what the workers have for the queue, and when the first that is out of reach ceases to count.
func (r *Reconciler) readWorkers(ctx context.Context, asked *quota.Request, names []string) (again time.Duration, err error) {
	queues, err := r.localQueuesOf(ctx, asked.Queue.Name)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		w, left, err := r.worker(ctx, name, queues)
		if err != nil {
			return 0, err
		}
		asked.Workers = append(asked.Workers, w)
		if left > 0 && (again == 0 || left < again) {
			again = left
		}
	}
	return again, nil
}

// checkOf is the check of a queue that Ferry serves; nil if it has none.
func (r *Reconciler) checkOf(ctx context.Context, cq *kueue.ClusterQueue) (*kueue.AdmissionCheck, error) {
	if cq.Spec.AdmissionChecksStrategy == nil {
		return nil, nil
	}
	for _, rule := range cq.Spec.AdmissionChecksStrategy.AdmissionChecks {
		check := &kueue.AdmissionCheck{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: string(rule.Name)}, check)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading AdmissionCheck %s: %w", rule.Name, err)
		case check.Spec.ControllerName == kueue.MultiKueueControllerName:
			return check, nil
		}
	}
	return nil, nil
}

// configOf is the config that a check names; nil if there is none.
func (r *Reconciler) configOf(ctx context.Context, check *kueue.AdmissionCheck) (*kueue.MultiKueueConfig, error) {
	if check.Spec.Parameters == nil {
		return nil, nil
	}
	config := &kueue.MultiKueueConfig{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: check.Spec.Parameters.Name}, config); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading MultiKueueConfig %s: %w", check.Spec.Parameters.Name, err)
	}
	return config, nil
}

func (r *Reconciler) localQueuesOf(ctx context.Context, cq string) ([]types.NamespacedName, error) {
	all := &kueue.LocalQueueList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the LocalQueues of ClusterQueue %s: %w", cq, err)
	}
	var keys []types.NamespacedName
	for i := range all.Items {
		if string(all.Items[i].Spec.ClusterQueue) == cq {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys, nil
}

// worker reads what a worker has for those LocalQueues, and how long one out of reach still counts.
func (r *Reconciler) worker(ctx context.Context, name string, queues []types.NamespacedName) (quota.Worker, time.Duration, error) {
	w := quota.Worker{Name: name}
	cluster := &kueue.MultiKueueCluster{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		w.Out = apierrors.IsNotFound(err)
		return w, 0, client.IgnoreNotFound(err)
	}
	status := r.Fleet.Status(name)
	conn, reachable := r.Fleet.Conn(name)
	switch {
	case status.Leaving || !takesJobs(cluster):
		w.Out = true
	case reachable:
		w.Known, w.Why = read(conn, &w, queues)
	default:
		left := r.leftOf(status)
		w.Out, w.Why = left <= 0, status.Message
		return w, max(left, 0), nil
	}
	return w, 0, nil
}

// takesJobs tells whether a worker is to get jobs: it has no quota to give else.
func takesJobs(cluster *kueue.MultiKueueCluster) bool {
	facts := placement.FactsOf(cluster.Labels, cluster.Annotations)
	return !facts.Cordoned && !facts.Draining
}

// leftOf is how long a worker out of reach still counts.
func (r *Reconciler) leftOf(status fleet.Status) time.Duration {
	since, grace := status.LostSince, r.LostTimeout
	if since.IsZero() {
		since = r.Clock.Now() // not heard of yet
	}
	if !status.Seen {
		grace = max(grace, r.FirstConnect)
	}
	return since.Add(grace).Sub(r.Clock.Now())
}

// read finds the ClusterQueues behind the LocalQueues of those names, each once, and the labels of the flavors.
func read(conn fleet.Conn, w *quota.Worker, queues []types.NamespacedName) (known bool, why string) {
	if served, why := conn.Serves(clusterQueueKind); !served {
		return false, why
	}
	if served, why := conn.Serves(flavorKind); !served {
		return false, why
	}
	seen := map[kueue.ClusterQueueReference]bool{}
	w.Flavors = map[kueue.ResourceFlavorReference]map[string]string{}
	for _, key := range queues {
		local, err := find[*kueue.LocalQueue](conn, localQueueKind.Kind, key)
		if err != nil {
			return false, err.Error()
		}
		if local == nil || seen[local.Spec.ClusterQueue] {
			continue
		}
		seen[local.Spec.ClusterQueue] = true
		cq, err := find[*kueue.ClusterQueue](conn, clusterQueueKind.Kind, types.NamespacedName{Name: string(local.Spec.ClusterQueue)})
		if err != nil {
			return false, err.Error()
		}
		if cq == nil {
			continue
		}
		w.Queues = append(w.Queues, cq)
		if err := readFlavors(conn, w, cq); err != nil {
			return false, err.Error()
		}
	}
	return true, ""
}

func readFlavors(conn fleet.Conn, w *quota.Worker, cq *kueue.ClusterQueue) error {
	for _, group := range cq.Spec.ResourceGroups {
		for _, f := range group.Flavors {
			flavor, err := find[*kueue.ResourceFlavor](conn, flavorKind.Kind, types.NamespacedName{Name: string(f.Name)})
			if err != nil {
				return err
			}
			if flavor != nil {
				w.Flavors[f.Name] = flavor.Labels
			}
		}
	}
	return nil
}

// find gives an object as the worker's cache holds it; nil when there is none.
func find[T client.Object](conn fleet.Conn, kind string, key types.NamespacedName) (found T, err error) {
	obj, err := conn.Find(kueue.SchemeGroupVersion.WithKind(kind), cache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil {
		return found, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	found, _ = obj.(T)
	return found, nil
}

// ownsGroups tells whether the resource groups are among the fields of an entry.
func ownsGroups(fields *metav1.FieldsV1) bool {
	var owned struct {
		Spec struct {
			Groups *struct{} `json:"f:resourceGroups"`
		} `json:"f:spec"`
	}
	return fields != nil && json.Unmarshal(fields.Raw, &owned) == nil && owned.Spec.Groups != nil
}
