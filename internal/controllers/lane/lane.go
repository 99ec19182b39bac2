// Package lane is a worker's side: it observes a job, plans, and applies the plan's actions for this one worker, so that a slow worker holds up nobody else.
package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	actions := p.Workers[r.Worker]
	for _, action := range actions {
		log.FromContext(ctx).V(2).Info("Writing to the worker", "job", ref.String(), "rule", p.Rule, "action", action.String(), "because", p.Because)
		if err := r.Applier.OnWorker(ctx, r.Worker, conn.Client(), ref, action); err != nil {
			return r.later(ctx, ref, err)
		}
	}
	if len(actions) > 0 {
		r.Poke(ref)
	}
	return reconcile.Result{}, nil
}

// later lets the queue's back-off retry a write that failed for a passing reason.
func (r *Reconciler) later(ctx context.Context, ref kinds.Ref, err error) (reconcile.Result, error) {
	if errors.Is(err, apply.ErrStale) || apierrors.IsConflict(err) {
		log.FromContext(ctx).V(3).Info("The worker's cache lags, deciding anew", "job", ref.String())
		return reconcile.Result{RequeueAfter: cacheLag}, nil
	}
	return reconcile.Result{}, fmt.Errorf("worker %s: %w", r.Worker, err)
}
