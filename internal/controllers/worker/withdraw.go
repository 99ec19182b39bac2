package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
)

// Finalizer keeps a MultiKueueCluster that is deleted until its worker is withdrawn from.
const Finalizer = "ferry.dev/withdraw"

const (
	// look is the time between two looks at what is left on a worker that is withdrawn from.
	look = time.Second
	// named is how many of the jobs left behind an event names.
	named = 10
)

// moving is a worker whose kubeconfig leads to another cluster now, while the connection to the one before is still used.
type moving struct {
	fingerprint string
	since       time.Time
}

// hold puts the finalizer on a cluster.
func (r *Reconciler) hold(ctx context.Context, cluster *kueue.MultiKueueCluster) error {
	if r.WithdrawTimeout <= 0 || controllerutil.ContainsFinalizer(cluster, Finalizer) {
		return nil
	}
	return r.patch(ctx, cluster, func(c *kueue.MultiKueueCluster) { controllerutil.AddFinalizer(c, Finalizer) })
}

func (r *Reconciler) patch(ctx context.Context, cluster *kueue.MultiKueueCluster, change func(*kueue.MultiKueueCluster)) error {
	before := cluster.DeepCopy()
	change(cluster)
	// The lock: a merge patch replaces the whole list, also a finalizer that someone else has just added.
	err := r.Client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing the finalizers of MultiKueueCluster %s: %w", cluster.Name, err)
	}
	return nil
}

// withdraw lets a cluster that is deleted go once nothing of ours is left on its worker, or nothing can be done about it.
func (r *Reconciler) withdraw(ctx context.Context, cluster *kueue.MultiKueueCluster) (reconcile.Result, error) {
	usable, err := r.keepConnection(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	status, left := r.Fleet.Status(cluster.Name), r.Left(ctx, cluster.Name)
	timeLeft := cluster.DeletionTimestamp.Add(r.WithdrawTimeout).Sub(r.now())
	switch {
	case len(left) == 0 && (status.Usable() || status.Reach == fleet.Lost):
		return r.release(ctx, cluster, corev1.EventTypeNormal, "Withdrawn", "Nothing of Ferry's is left on the worker")
	case !usable:
		return r.release(ctx, cluster, corev1.EventTypeWarning, "LeftBehind", "There are no credentials to withdraw from the worker. "+leftBehind(left))
	case timeLeft <= 0:
		return r.release(ctx, cluster, corev1.EventTypeWarning, "LeftBehind",
			fmt.Sprintf("The worker could not be withdrawn from within %s. %s", r.WithdrawTimeout, leftBehind(left)))
	}
	if !status.Leaving {
		r.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, "Withdrawing", "Withdraw", "Before the worker is forgotten, its jobs are offered to others and removed there: %d are left; this takes %s at most", len(left), r.WithdrawTimeout)
		r.Fleet.Leave(cluster.Name, true)
	}
	return reconcile.Result{RequeueAfter: min(look, timeLeft)}, nil
}

// keepConnection makes sure that the worker can be reached to be withdrawn from, and tells whether it may be. A Secret
// that was deleted along with its cluster does not end the connection that there is.
func (r *Reconciler) keepConnection(ctx context.Context, cluster *kueue.MultiKueueCluster) (bool, error) {
	if r.Fleet.Status(cluster.Name).Usable() {
		return true, nil
	}
	access, problem, err := r.access(ctx, cluster)
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig of MultiKueueCluster %s: %w", cluster.Name, err)
	}
	if problem == nil {
		r.Fleet.Set(cluster.Name, access.config, access.fingerprint)
	}
	return problem == nil, nil
}

func (r *Reconciler) release(ctx context.Context, cluster *kueue.MultiKueueCluster, kind, reason, note string) (reconcile.Result, error) {
	err := r.patch(ctx, cluster, func(c *kueue.MultiKueueCluster) { controllerutil.RemoveFinalizer(c, Finalizer) })
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case err != nil && !apierrors.IsNotFound(err):
		return reconcile.Result{}, err
	}
	r.Recorder.Eventf(cluster, nil, kind, reason, "Withdraw", "%s", cutNote(note))
	if kind == corev1.EventTypeNormal {
		r.Vacated(cluster.Name)
	}
	r.Fleet.Remove(cluster.Name)
	return reconcile.Result{}, nil
}

func leftBehind(jobs []string) string {
	if len(jobs) == 0 {
		return "No job is assigned or offered to it; what else is there of Ferry's has to be removed by hand."
	}
	names, more := jobs, ""
	if len(names) > named {
		names, more = names[:named], fmt.Sprintf(" and %d more", len(jobs)-named)
	}
	return fmt.Sprintf("Left behind are %s%s: they may go on running there until they are removed by hand, also when they run elsewhere.", strings.Join(names, ", "), more)
}

// stays tells whether a worker whose kubeconfig leads to another cluster now is still to be reached as before, since
// there is something of ours to be withdrawn from there first.
func (r *Reconciler) stays(ctx context.Context, cluster *kueue.MultiKueueCluster, to access) bool {
	name := cluster.Name
	m, under := r.moving[name]
	if !under || m.fingerprint != to.fingerprint {
		if r.WithdrawTimeout <= 0 || !r.Fleet.Elsewhere(ctx, name, to.config) {
			r.moved(name)
			return false
		}
		if !under {
			m.since = r.now()
			r.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, "Withdrawing", "Withdraw",
				"The credentials lead to another cluster than before: the jobs there are offered to others and removed first, for %s at most", r.WithdrawTimeout)
		}
		m.fingerprint = to.fingerprint
		if r.moving == nil {
			r.moving = map[string]moving{}
		}
		r.moving[name] = m
		r.Fleet.Leave(name, true)
		return true
	}
	left := r.Left(ctx, name)
	if !r.Fleet.Status(name).Usable() || len(left) == 0 {
		r.moved(name)
		return false
	}
	if r.now().Before(m.since.Add(r.WithdrawTimeout)) {
		return true
	}
	r.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, "LeftBehind", "Withdraw", "%s",
		cutNote(fmt.Sprintf("The cluster that the credentials led to before could not be withdrawn from within %s. %s", r.WithdrawTimeout, leftBehind(left))))
	r.moved(name)
	return false
}

// moved ends a withdrawal, if there is one under way.
func (r *Reconciler) moved(name string) {
	delete(r.moving, name)
	r.Fleet.Leave(name, false)
}

func cutNote(note string) string {
	if len(note) > longestNote {
		note = note[:longestNote]
	}
	return note
}
