package lane

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
)

// concurrency is how many jobs of one worker are written at once.
const concurrency = 4

// Lanes runs one lane per worker, each with a queue and goroutines of its own.
type Lanes struct {
	Observer *observe.Observer
	Applier  *apply.Applier
	Poke     func(ref kinds.Ref)
	Log      logr.Logger

	mu    sync.Mutex // guards the fields below; never held across I/O
	root  context.Context
	lanes map[string]*running
	ended sync.WaitGroup
}

type running struct {
	in     inlet.Inlet[kinds.Ref]
	cancel context.CancelFunc
}

var (
	_ manager.Runnable               = (*Lanes)(nil)
	_ manager.LeaderElectionRunnable = (*Lanes)(nil)
)

// NeedLeaderElection is true: only the leader writes to workers.
func (l *Lanes) NeedLeaderElection() bool { return true }

// Start runs the lanes until ctx ends, and returns when all of them have ended.
func (l *Lanes) Start(ctx context.Context) error {
	l.mu.Lock()
	l.root = ctx
	for worker, r := range l.lanes {
		l.launch(worker, r)
	}
	l.mu.Unlock()
	<-ctx.Done()
	l.ended.Wait()
	return nil
}

// Open makes a lane for a worker that has none.
func (l *Lanes) Open(worker string) { l.lane(worker) }

// Add queues jobs in a worker's lane. A worker without one is not connected;
// once it is, everything that concerns it is decided anew.
func (l *Lanes) Add(worker string, refs ...kinds.Ref) {
	l.mu.Lock()
	r := l.lanes[worker]
	l.mu.Unlock()
	if r != nil {
		r.in.Add(refs...)
	}
}

// Close ends the lane of a worker that was removed.
func (l *Lanes) Close(worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.lanes[worker]; r != nil && r.cancel != nil {
		r.cancel()
	}
	delete(l.lanes, worker)
}

func (l *Lanes) lane(worker string) *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, found := l.lanes[worker]; found {
		return r
	}
	if l.lanes == nil {
		l.lanes = map[string]*running{}
	}
	r := &running{}
	l.lanes[worker] = r
	if l.root != nil && l.root.Err() == nil {
		l.launch(worker, r)
	}
	return r
}

// launch starts a lane; the lock is held.
func (l *Lanes) launch(worker string, r *running) {
	c, err := l.controller(worker, &r.in)
	if err != nil {
		l.Log.Error(err, "Opening a lane", "worker", worker)
		return
	}
	ctx, cancel := context.WithCancel(l.root)
	r.cancel = cancel
	l.ended.Go(func() {
		defer cancel()
		if err := c.Start(ctx); err != nil {
			l.Log.Error(err, "A lane ended", "worker", worker)
		}
	})
}

func (l *Lanes) controller(worker string, in *inlet.Inlet[kinds.Ref]) (controller.TypedController[kinds.Ref], error) {
	skip := true
	c, err := controller.NewTypedUnmanaged("lane", controller.TypedOptions[kinds.Ref]{
		Reconciler:              &Reconciler{Worker: worker, Observer: l.Observer, Applier: l.Applier, Poke: l.Poke},
		MaxConcurrentReconciles: concurrency,
		// All lanes share one name, and so their metrics: workers come and go.
		SkipNameValidation: &skip,
		LogConstructor: func(*kinds.Ref) logr.Logger {
			return l.Log.WithValues("worker", worker)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("the lane of worker %s: %w", worker, err)
	}
	return c, c.Watch(in)
}
