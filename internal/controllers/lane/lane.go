// Package lane is a worker's side: it observes a job, plans, and applies the plan's actions for this one worker, so that a slow worker holds up nobody else.
package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
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
	return r.carryOut(ctx, conn.Client(), &s, plan.Decide(s))
}

// carryOut tries every action that does not wait for one that failed.
func (r *Reconciler) carryOut(ctx context.Context, to client.Client, s *plan.Snapshot, p plan.Plan) (reconcile.Result, error) {
	t := tries{Reconciler: r, ref: s.Ref, workloads: s.Workloads, now: s.Now, to: to}
	for _, action := range p.Workers[r.Worker] {
		if slices.ContainsFunc(t.undone, func(earlier plan.Action) bool { return plan.WaitsFor(action, earlier) }) {
			continue
		}
		if !t.try(ctx, p, action) {
			break
		}
	}
	t.end()
	if isPassing(t.err) {
		log.FromContext(ctx).V(3).Info("The worker's cache lags, deciding anew", "job", s.Ref.String())
		return reconcile.Result{RequeueAfter: cacheLag}, nil
	}
	if t.err != nil {
		return reconcile.Result{}, fmt.Errorf("worker %s: %w", r.Worker, t.err)
	}
	return reconcile.Result{RequeueAfter: t.again}, nil
}

// tries are the writes of one pass over a job, and what came of them.
type tries struct {
	*Reconciler
	ref       kinds.Ref
	workloads []*kueue.Workload
	now       time.Time
	to        client.Client

	wrote, news bool
	undone      []plan.Action
	// again is when the first of those may be asked for again.
	again time.Duration
	// err is a fault that passes: the queue's back-off has it tried again.
	err error
}

// try carries out one action, and tells whether there is any point in going on.
func (t *tries) try(ctx context.Context, p plan.Plan, action plan.Action) (goOn bool) {
	if left := t.pace.hold(t.ref, action, t.now); left > 0 {
		t.putOff(action, left)
		return true
	}
	log.FromContext(ctx).V(2).Info("Writing to the worker", "job", t.ref.String(), "rule", p.Rule, "action", action.String(), "because", p.Because)
	err := t.Applier.OnWorker(ctx, t.Worker, t.to, t.ref, action)
	if err == nil {
		t.wrote = true
		return true
	}
	if isPassing(err) {
		t.err = err
		return false
	}
	news := t.Observer.Memory.Failed(t.Worker, t.ref, action.String(), reason.Brief(err.Error()), t.now)
	t.news = t.news || news
	t.putOff(action, cacheLag)
	if apply.Refused(err) {
		if news {
			t.Applier.Tell(t.Worker, t.ref, t.workloads, action, err)
		}
		return true
	}
	t.err = errors.Join(t.err, err)
	// Who did not answer will not answer the next request either.
	return apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
}

// putOff notes an action that is still to be carried out, for which the pace says when.
func (t *tries) putOff(action plan.Action, left time.Duration) {
	t.undone = append(t.undone, action)
	if t.again == 0 || left < t.again {
		t.again = left
	}
}

// end forgets troubles that are over, and tells the manager's side if anything is new.
func (t *tries) end() {
	if !isPassing(t.err) {
		var still []string
		for _, action := range t.undone {
			still = append(still, action.String())
		}
		t.Observer.Memory.Went(t.Worker, t.ref, still...)
	}
	if t.wrote || t.news {
		t.Poke(t.ref)
	}
}

// isPassing tells that the decision was made on what is no longer so.
func isPassing(err error) bool {
	return errors.Is(err, apply.ErrStale) || errors.Is(err, apply.ErrGone) || apierrors.IsConflict(err)
}
