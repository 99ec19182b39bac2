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

// concurrency is how many jobs of one kind are written at once on one worker.
const concurrency = 4

// Lanes runs one lane per worker, which has a queue and goroutines of its own for each kind of
// job that comes: a kind whose webhook hangs there holds up no other.
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
	reconciler *Reconciler
	queues     map[string]*inlet.Inlet[kinds.Ref] // by kind
	life       context.Context                    // nil before the start
	cancel     context.CancelFunc
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
	for _, r := range l.lanes {
		l.launch(r)
	}
	l.mu.Unlock()
	<-ctx.Done()
	l.ended.Wait()
	return nil
}

// Open makes a lane for a worker that has none.
func (l *Lanes) Open(worker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, found := l.lanes[worker]; found {
		return
	}
	if l.lanes == nil {
		l.lanes = map[string]*running{}
	}
	r := &running{
		reconciler: &Reconciler{Worker: worker, Observer: l.Observer, Applier: l.Applier, Poke: l.Poke},
		queues:     map[string]*inlet.Inlet[kinds.Ref]{},
	}
	l.lanes[worker] = r
	if l.root != nil && l.root.Err() == nil {
		l.launch(r)
	}
}

// Add queues jobs in a worker's lane. A worker without one is not connected;
// once it is, everything that concerns it is decided anew.
func (l *Lanes) Add(worker string, refs ...kinds.Ref) {
	for _, ref := range refs {
		if in := l.queue(worker, ref.Kind); in != nil {
			in.Add(ref)
		}
	}
}

// queue is the one for a kind of job in a worker's lane, made at its first job; nil when there is no lane.
func (l *Lanes) queue(worker, kind string) *inlet.Inlet[kinds.Ref] {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.lanes[worker]
	if r == nil {
		return nil
	}
	in, found := r.queues[kind]
	if !found {
		in = &inlet.Inlet[kinds.Ref]{}
		r.queues[kind] = in
		if r.life != nil {
			l.serve(r, in)
		}
	}
	return in
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

// launch starts a lane; the lock is held.
func (l *Lanes) launch(r *running) {
	r.life, r.cancel = context.WithCancel(l.root)
	for _, in := range r.queues {
		l.serve(r, in)
	}
}

// serve starts to work on one of a lane's queues; the lock is held.
func (l *Lanes) serve(r *running, in *inlet.Inlet[kinds.Ref]) {
	worker, life := r.reconciler.Worker, r.life
	c, err := l.controller(r.reconciler, in)
	if err != nil {
		l.Log.Error(err, "Opening a lane", "worker", worker)
		return
	}
	l.ended.Go(func() {
		if err := c.Start(life); err != nil {
			l.Log.Error(err, "A lane ended", "worker", worker)
		}
	})
}

func (l *Lanes) controller(r *Reconciler, in *inlet.Inlet[kinds.Ref]) (controller.TypedController[kinds.Ref], error) {
	skip := true
	c, err := controller.NewTypedUnmanaged("lane", controller.TypedOptions[kinds.Ref]{
		Reconciler:              quiet{TypedReconciler: r, worker: r.Worker, fleet: l.Observer.Fleet},
		MaxConcurrentReconciles: concurrency,
		// All lanes share one name, and so their metrics: workers come and go.
		SkipNameValidation: &skip,
		LogConstructor:     loggers(l.Log, r.Worker),
	})
	if err != nil {
		return nil, fmt.Errorf("the lane of worker %s: %w", r.Worker, err)
	}
	return c, c.Watch(in)
}
