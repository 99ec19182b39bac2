package lane

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/kinds"
)

// silence is how long a job waits for another try when its worker did not answer.
const silence = time.Second

// quiet keeps what a lost worker makes fail from being told as errors, each with a stack trace: that the worker is
// lost is told once, in the condition of its MultiKueueCluster, and on connecting everything is decided anew.
type quiet struct {
	reconcile.TypedReconciler[kinds.Ref]
	worker string
	fleet  fleet.View
}

// Reconcile implements reconcile.TypedReconciler.
func (q quiet) Reconcile(ctx context.Context, ref kinds.Ref) (reconcile.Result, error) {
	before, _ := q.fleet.Conn(q.worker)
	result, err := q.TypedReconciler.Reconcile(ctx, ref)
	if err == nil {
		return result, nil
	}
	now, reachable := q.fleet.Conn(q.worker)
	switch {
	case !reachable || now != before:
		log.FromContext(ctx).V(1).Info("Given up, as the connection to the worker was lost", "job", ref.String(), "error", err.Error())
		return reconcile.Result{}, nil
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && q.fleet.Status(q.worker).Reach == fleet.Suspect:
		log.FromContext(ctx).V(1).Info("The worker does not answer", "job", ref.String(), "error", err.Error())
		return reconcile.Result{RequeueAfter: silence}, nil
	}
	return result, err
}

// loggers makes a lane's loggers. Lanes come and go with their workers, of which their
// clusters tell already: the lines about the lane itself, not about a job, are details.
func loggers(base logr.Logger, worker string) func(*kinds.Ref) logr.Logger {
	base = base.WithValues("worker", worker)
	return func(ref *kinds.Ref) logr.Logger {
		if ref == nil {
			return base.V(1)
		}
		return base
	}
}
