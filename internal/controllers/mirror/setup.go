package mirror

import (
	"fmt"

	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/kinds"
)

const (
	// concurrency is how many jobs' statuses are written at once.
	concurrency = 4
	// share is the part of the manager's client's limit that mirroring may use: one of so many.
	share = 3
)

// Setup adds the controller to the manager. In brings the jobs whose status dispatch found to be another one on a worker.
func Setup(mgr ctrl.Manager, r *Reconciler, in *inlet.Inlet[kinds.Ref]) error {
	c, err := controller.NewTyped("mirror", mgr, controller.TypedOptions[kinds.Ref]{Reconciler: r, MaxConcurrentReconciles: concurrency})
	if err != nil {
		return fmt.Errorf("adding the mirror controller: %w", err)
	}
	return c.Watch(in)
}

// BudgetOf is mirroring's part of the limit of the manager's client; without a limit there, nil.
func BudgetOf(qps float32, burst int) flowcontrol.RateLimiter {
	if qps < 0 {
		return nil
	}
	return flowcontrol.NewTokenBucketRateLimiter(qps/share, max(burst/share, 1))
}
