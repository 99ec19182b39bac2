// Package dispatch is the manager's side: it observes a job, plans, and applies the plan's actions for the manager.
package dispatch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

const (
	// passes bounds how often one reconcile decides anew after its own writes.
	passes = 4
	// afterConflict is when to look again if the event of the other's write fails to come.
	afterConflict = 200 * time.Millisecond
)

// Reconciler decides about one job at a time and writes to the manager only.
type Reconciler struct {
	Observer *observe.Observer
	Applier  *apply.Applier
	// Poke tells a worker's lane that the plan has work for it.
	Poke func(worker string, ref kinds.Ref)
	// Mirror tells that the job's status is another one on its worker, which nobody waits for.
	Mirror func(ref kinds.Ref)
	// Decided is told every plan, for metrics; may be nil.
	Decided func(kinds.Ref, plan.Plan)

	pace pace
}

// Reconcile implements reconcile.TypedReconciler.
func (r *Reconciler) Reconcile(ctx context.Context, ref kinds.Ref) (reconcile.Result, error) {
	for range passes {
		wrote, again, err := r.pass(ctx, ref)
		switch {
		case apierrors.IsConflict(err):
			log.FromContext(ctx).V(3).Info("Decided on an old version, deciding anew", "job", ref.String())
			return turn{after: afterConflict, informs: again.informs}.result(), nil
		case apierrors.IsNotFound(err):
			// It went away; its event decides what is next.
			return reconcile.Result{}, nil
		case err != nil:
			return turn{informs: again.informs}.result(), err
		case !wrote:
			return again.result(), nil
		}
	}
	return turn{after: time.Millisecond}.result(), nil
}

// turn is when to decide anew; zero: not by itself.
type turn struct {
	after time.Duration
	// informs tells that it is for nothing but to inform.
	informs bool
}

// result queues what only informs behind all else, and all else as fresh: a look of the resync, which has low
// priority, may have found work.
func (t turn) result() reconcile.Result {
	priority := 0
	if t.informs {
		priority = handler.LowPriority
	}
	return reconcile.Result{RequeueAfter: t.after, Priority: &priority}
}

// pass decides once and tells whether it wrote anything, and when to decide anew if it did not.
func (r *Reconciler) pass(ctx context.Context, ref kinds.Ref) (wrote bool, again turn, err error) {
	s, err := r.Observer.Snapshot(ctx, ref)
	if err != nil {
		return false, turn{}, err
	}
	p := plan.Decide(s)
	log.FromContext(ctx).V(2).Info("Decided", "job", ref.String(), "rule", p.Rule, "because", p.Because, "manager", len(p.Manager), "workers", len(p.Workers))
	if r.Decided != nil {
		r.Decided(ref, p)
	}
	if len(s.Jobs) == 0 && s.Unseen == "" && len(s.Workloads) == 0 && len(p.Workers) == 0 {
		r.Observer.Memory.Forget(ref)
	}
	for worker := range p.Workers {
		r.Poke(worker, ref)
	}
	return r.write(ctx, s, p)
}

// write carries out the plan's actions for the manager that are due. What is refused holds up nothing else: the manager
// may refuse it for as long as it is so.
func (r *Reconciler) write(ctx context.Context, s plan.Snapshot, p plan.Plan) (wrote bool, again turn, err error) {
	if len(plan.Leisurely(p)) > 0 {
		r.Mirror(s.Ref)
	}
	due, again := r.due(p, s.Now)
	var refused []error
	var undone []string
	defer func() { r.Observer.Memory.Went(onManager, s.Ref, undone...) }()
	for _, action := range due {
		log.FromContext(ctx).V(2).Info("Writing to the manager", "job", s.Ref.String(), "rule", p.Rule, "action", action.String(), "because", p.Because)
		err := r.Applier.OnManager(ctx, s.Ref, action)
		switch {
		case err == nil, errors.Is(err, apply.ErrStatusRefused):
			// Also a refusal changes what is to do next.
			wrote = true
		case isMirror(action):
			refused = append(refused, err)
		case apply.Refused(err) && !apierrors.IsNotFound(err):
			again.informs = r.pace.failed(action) && len(refused) == 0
			refused, undone = append(refused, err), append(undone, action.String())
			r.tell(s, action, err)
		default:
			return wrote, turn{informs: r.pace.failed(action)}, err
		}
	}
	return wrote, again, errors.Join(refused...)
}

// due are the actions to carry out now, and when the first of the others is.
func (r *Reconciler) due(p plan.Plan, now time.Time) (due []plan.Action, again turn) {
	again.after = p.Again
	for _, action := range p.Manager {
		if mirror, is := action.(plan.MirrorStatus); is && !mirror.Urgent {
			continue
		}
		left := r.pace.hold(action, now)
		switch {
		case left <= 0:
			due = append(due, action)
		case again.after == 0 || left < again.after:
			again = turn{left, true}
		}
	}
	return due, again
}

func isMirror(action plan.Action) bool {
	_, is := action.(plan.MirrorStatus)
	return is
}

// onManager stands for the manager where a worker is named.
const onManager = ""

// tell lets users know of a write that the manager refuses, once.
func (r *Reconciler) tell(s plan.Snapshot, action plan.Action, err error) {
	if r.Observer.Memory.Failed(onManager, s.Ref, action.String(), reason.Brief(err.Error()), s.Now) {
		r.Applier.TellOfManager(s.Workloads, action, err)
	}
}
