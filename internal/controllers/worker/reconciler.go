// Package worker ties each MultiKueueCluster to the fleet's connection to it, and shows that connection as its Active condition.
package worker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/profile"
)

// Fleet is what the controller needs of fleet.Fleet.
type Fleet interface {
	Set(worker string, cfg *rest.Config, fingerprint string)
	Unusable(worker, reason, message string)
	Leave(worker string, leaving bool)
	Elsewhere(ctx context.Context, worker string, cfg *rest.Config) bool
	Remove(worker string)
	Status(worker string) fleet.Status
}

// Files reads a kubeconfig from a path; see fleet.PathLoader.
type Files interface {
	Load(location string) ([]byte, error)
}

// conflictDelay is the wait before another attempt when someone else wrote the status at the same moment.
const conflictDelay = 200 * time.Millisecond

// longestNote is how many bytes an event may hold.
const longestNote = 1000

// Reconciler gives the fleet the credentials of each MultiKueueCluster and writes its Active condition.
type Reconciler struct {
	Client        client.Client // of the manager
	Namespace     string        // Ferry's own, where the Secrets are
	AllowInsecure bool          // see fleet.ParseKubeConfig
	Fleet         Fleet
	Files         Files
	Recorder      events.EventRecorder
	// Left names the jobs that a worker has copies of, or is assigned or offered.
	Left func(ctx context.Context, worker string) []string
	// Vacated is told that nothing of ours is left on a worker that is about to be forgotten.
	Vacated func(worker string)
	// Failing says for which kinds the worker is not asked, as their jobs fail there one after the other; empty for none.
	Failing func(worker string) string
	// Profiles reads ClusterProfiles, past any cache, and Plugins gets their credentials.
	Profiles client.Reader
	Plugins  *profile.Plugins
	// WithdrawTimeout bounds how long a worker that is given up is withdrawn from first; zero: it is not.
	WithdrawTimeout time.Duration
	Clock           clock.PassiveClock // the real one if nil

	moving map[string]moving // by cluster; one cluster is reconciled at a time
}

func (r *Reconciler) now() time.Time {
	if r.Clock == nil {
		return time.Now()
	}
	return r.Clock.Now()
}

// Reconcile implements reconcile.Reconciler. What is wrong with a cluster is a condition, not an error: errors are
// those of the manager's API alone.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &kueue.MultiKueueCluster{}
	err := r.Client.Get(ctx, req.NamespacedName, cluster)
	switch {
	case apierrors.IsNotFound(err), err == nil && isForgotten(cluster):
		delete(r.moving, req.Name)
		r.Fleet.Remove(req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("reading MultiKueueCluster %s: %w", req.Name, err)
	case !cluster.DeletionTimestamp.IsZero():
		return r.withdraw(ctx, cluster)
	}
	switch err := r.hold(ctx, cluster); {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsForbidden(err):
		// A role of an earlier Ferry: the worker is used, and is not withdrawn from if it is deleted.
		log.FromContext(ctx).Info("Cannot hold the cluster until it is withdrawn from: update Ferry's role", "cluster", cluster.Name, "error", err.Error())
	case err != nil:
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return r.reach(ctx, cluster)
}

// reach lets the fleet connect to the worker, or says why it cannot.
func (r *Reconciler) reach(ctx context.Context, cluster *kueue.MultiKueueCluster) (reconcile.Result, error) {
	access, problem, err := r.access(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the credentials of MultiKueueCluster %s: %w", cluster.Name, err)
	}
	again := access.again
	switch {
	case problem != nil:
		r.Fleet.Unusable(cluster.Name, problem.reason, "load client config failed: "+problem.message)
		r.moved(cluster.Name)
		again = problem.again
	case access.config == nil: // not yet; what the fleet knows still holds
	case r.stays(ctx, cluster, access):
		return reconcile.Result{RequeueAfter: look}, nil
	default:
		r.Fleet.Set(cluster.Name, access.config, access.fingerprint)
	}
	result, err := r.show(ctx, cluster, r.Fleet.Status(cluster.Name))
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = again
	}
	return result, err
}

// isForgotten: the cluster is deleted, and we do not hold it.
func isForgotten(cluster *kueue.MultiKueueCluster) bool {
	return !cluster.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(cluster, Finalizer)
}

// show writes the conditions that changed, and tells of each change in an event.
func (r *Reconciler) show(ctx context.Context, cluster *kueue.MultiKueueCluster, status fleet.Status) (reconcile.Result, error) {
	var changed []metav1.Condition
	for _, condition := range r.conditions(cluster, status) {
		if !sameCondition(meta.FindStatusCondition(cluster.Status.Conditions, condition.Type), condition) {
			changed = append(changed, condition)
		}
	}
	if len(changed) == 0 {
		return reconcile.Result{}, nil
	}
	before := cluster.DeepCopy()
	for _, condition := range changed {
		meta.SetStatusCondition(&cluster.Status.Conditions, condition)
	}
	// The lock: a merge patch replaces the whole list, also a condition that someone else has just added.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.Client.Status().Patch(ctx, cluster, patch)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil // deleted meanwhile: its own event follows
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("writing the conditions of MultiKueueCluster %s: %w", cluster.Name, err)
	}
	for _, condition := range changed {
		r.record(cluster, meta.FindStatusCondition(before.Status.Conditions, condition.Type), condition)
	}
	return reconcile.Result{}, nil
}

// conditions are what the cluster should say now, as far as that is known.
func (r *Reconciler) conditions(cluster *kueue.MultiKueueCluster, status fleet.Status) []metav1.Condition {
	var conditions []metav1.Condition
	if condition, known := activeCondition(status, cluster.Generation); known {
		conditions = append(conditions, condition)
	}
	if condition, needed := r.jobsRunCondition(cluster); needed {
		conditions = append(conditions, condition)
	}
	return conditions
}

// JobsRun is a condition of Ferry's own: False while the jobs of some kind fail on the worker one after the other, so
// that it is not asked to run more of them for a while. A worker where that never happened does not have it.
const JobsRun = "ferry.dev/JobsRun"

func (r *Reconciler) jobsRunCondition(cluster *kueue.MultiKueueCluster) (condition metav1.Condition, needed bool) {
	condition = metav1.Condition{
		Type: JobsRun, Status: metav1.ConditionTrue, ObservedGeneration: cluster.Generation, Reason: "JobsRun", Message: "Jobs of all kinds are offered",
	}
	failing := ""
	if r.Failing != nil {
		failing = r.Failing(cluster.Name)
	}
	if failing == "" {
		return condition, meta.FindStatusCondition(cluster.Status.Conditions, JobsRun) != nil
	}
	condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "JobsFail", failing
	return condition, true
}

// record tells of a change that is more than a new generation observed.
func (r *Reconciler) record(cluster *kueue.MultiKueueCluster, before *metav1.Condition, now metav1.Condition) {
	if before != nil && before.Status == now.Status && before.Reason == now.Reason && before.Message == now.Message {
		return
	}
	kind, reason, note := corev1.EventTypeNormal, now.Reason, now.Message
	if now.Type == kueue.MultiKueueClusterActive {
		reason, note = "Connected", "Connected to worker "+cluster.Name
	}
	if now.Status != metav1.ConditionTrue {
		kind, reason, note = corev1.EventTypeWarning, now.Reason, now.Message
	}
	r.Recorder.Eventf(cluster, nil, kind, reason, "Connect", "%s", cutNote(note))
}

// activeCondition is the Active condition for a status. While the first attempt with new credentials is under way
// nothing is known yet, and what the condition says stays.
func activeCondition(status fleet.Status, generation int64) (metav1.Condition, bool) {
	condition := metav1.Condition{
		Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: status.Reason, Message: status.Message,
	}
	switch status.Reach {
	case fleet.Connected, fleet.Suspect:
		// A suspicion that passes is no news for the cluster's users.
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, fleet.ReasonActive, "Connected"
		return condition, true
	case fleet.Lost, fleet.Unusable:
		return condition, true
	}
	return condition, false
}

func sameCondition(old *metav1.Condition, now metav1.Condition) bool {
	return old != nil && old.Status == now.Status && old.Reason == now.Reason && old.Message == now.Message &&
		old.ObservedGeneration == now.ObservedGeneration
}
