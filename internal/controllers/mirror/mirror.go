// Package mirror shows on the manager what runs on the workers, with a queue and a budget of its own, so that an operator that writes statuses all the time delays no dispatch.
package mirror

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

// afterConflict is when to look again if the event of the other's write fails to come.
const afterConflict = 200 * time.Millisecond

// Reconciler writes the statuses of one job at a time, but for those that somebody waits for (results, and that nothing
// runs any more): dispatch writes these.
type Reconciler struct {
	Observer *observe.Observer
	Applier  *apply.Applier
	// Budget bounds the writes; nil: it does not.
	Budget flowcontrol.RateLimiter

	pace pace
}

// Reconcile implements reconcile.TypedReconciler.
func (r *Reconciler) Reconcile(ctx context.Context, ref kinds.Ref) (reconcile.Result, error) {
	s, err := r.Observer.Snapshot(ctx, ref)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := plan.Leisurely(plan.Decide(s))
	if len(wanted) == 0 {
		r.pace.settled(ref)
		return reconcile.Result{}, nil
	}
	var again time.Duration
	var refused []error
	for _, status := range wanted {
		if left := r.pace.hold(ref, status.Job.GetUID(), s.Now); left > 0 {
			if again == 0 || left < again {
				again = left
			}
			continue
		}
		// The manager may refuse one status for as long as it is so: that holds up no other.
		switch err := r.write(ctx, ref, status); {
		case apierrors.IsConflict(err):
			again = afterConflict
		case err != nil && !apierrors.IsNotFound(err):
			refused = append(refused, err)
		}
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(refused...)
}

func (r *Reconciler) write(ctx context.Context, ref kinds.Ref, status plan.MirrorStatus) error {
	if r.Budget != nil {
		if err := r.Budget.Wait(ctx); err != nil {
			return err
		}
	}
	log.FromContext(ctx).V(2).Info("Mirroring", "job", ref.String(), "action", status.String())
	return r.Applier.OnManager(ctx, ref, status)
}
