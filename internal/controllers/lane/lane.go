// Package lane is a worker's side: it observes a job, plans, and applies the plan's actions for this one worker, so that a slow worker holds up nobody else.
package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

// cacheLag is how long a cache gets to show what the API server said already.
const cacheLag = 200 * time.Millisecond

// Reconciler writes to one worker only.
type Reconciler struct {
	Worker   string
	Observer *observe.Observer
	Applier  *apply.Applier
	// Poke tells the manager's side that something on this worker changed.
	Poke func(ref kinds.Ref)

	pace pace
}

// Reconcile implements reconcile.TypedReconciler.
func (r *Reconciler) Reconcile(ctx context.Context, ref kinds.Ref) (reconcile.Result, error) {
	conn, reachable := r.Observer.Fleet.Conn(r.Worker)
	if !reachable {
		// On connecting, everything that concerns this worker is decided anew.
		return reconcile.Result{}, nil
	}
	s, err := r.Observer.Snapshot(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := plan.Decide(s)
	changed, again, err := r.carryOut(ctx, conn.Client(), p, s)
	if changed {
		r.Poke(ref)
	}
	if err != nil {
		return r.later(ctx, ref, err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// carryOut carries out the plan's actions for this worker in their order. It tells whether anything came of
// that, and when to go on with one that was asked for just before.
func (r *Reconciler) carryOut(ctx context.Context, to client.Client, p plan.Plan, s plan.Snapshot) (changed bool, again time.Duration, err error) {
	for _, action := range p.Workers[r.Worker] {
		if left := r.pace.hold(s.Ref, action, s.Now); left > 0 {
			return changed, left, nil
		}
		log.FromContext(ctx).V(2).Info("Writing to the worker", "job", s.Ref.String(), "rule", p.Rule, "action", action.String(), "because", p.Because)
		if err := r.Applier.OnWorker(ctx, r.Worker, to, s.Ref, action); err != nil {
			return changed, 0, err
		}
		changed = true
	}
	return changed, 0, nil
}

// later lets the queue's back-off retry a write that failed for a passing reason.
func (r *Reconciler) later(ctx context.Context, ref kinds.Ref, err error) (reconcile.Result, error) {
	if errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrGone) || apierrors.IsConflict(err) {
		log.FromContext(ctx).V(3).Info("The worker's cache lags, deciding anew", "job", ref.String())
		return reconcile.Result{RequeueAfter: cacheLag}, nil
	}
	return reconcile.Result{}, fmt.Errorf("worker %s: %w", r.Worker, err)
}
