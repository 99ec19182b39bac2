package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"ferry.dev/ferry/internal/placement"
)

const (
	// wakeEvery is the least time between two times that jobs are woken because workers have more to give.
	wakeEvery = 300 * time.Millisecond
	// wakeMost is how many are woken at a time: the first in line. Those behind them wait for what these leave.
	wakeMost = 50
)

// waker does something soon after it was poked, once for all pokes until then.
type waker struct {
	do      func()
	pending atomic.Bool
}

// watchCapacity has what the workers' queues have shown, and read where the dispatcher goes by it.
func (w *wiring) watchCapacity(ctx context.Context) error {
	w.waker = &waker{do: func() { w.in.Add(w.dispatch.NextInLine(ctx, wakeMost)...) }}
	if err := metrics.Registry.Register(&quotaMetrics{w.fleet.Workers, w.observer.Quotas}); err != nil {
		return fmt.Errorf("setting up the metrics of the workers' quota: %w", err)
	}
	if w.observer.Policy.Dispatcher == placement.BestName {
		w.wantQueues()
	}
	return nil
}

func (w *waker) poke() {
	if w.pending.CompareAndSwap(false, true) {
		time.AfterFunc(wakeEvery, func() {
			w.pending.Store(false) // before: what changes from now on needs another look
			w.do()
		})
	}
}
