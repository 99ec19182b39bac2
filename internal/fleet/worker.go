package fleet

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// worker drives the connection to one worker. Decisions are made by next under mu, which is never held across I/O or
// callbacks; their effects are carried out in order by run, the goroutine that owns everything else here.
type worker struct {
	name    string
	options *Options
	rules   rules
	limiter flowcontrol.RateLimiter // outlives connections, so that reconnecting is no way around it
	log     logr.Logger
	after   <-chan struct{} // closed once the earlier worker of this name has ended; nil if there is none
	done    chan struct{}   // closed when run has ended

	launched bool // guarded by the fleet's mutex

	mu      sync.Mutex
	state   state
	config  *rest.Config
	link    link // of the live session, nil else
	pending []step
	signal  chan struct{} // has room for one: there is something pending

	// Below: of run alone.
	attempt context.Context // ends with the current attempt or connection
	cancel  context.CancelFunc
	wake    clock.Timer
	tasks   sync.WaitGroup
}

// step is an effect with what it needs of the state it came from.
type step struct {
	effect
	session uint64
	config  *rest.Config
	link    link
	status  Status
	last    bool // nothing follows: the worker is removed
}

func newWorker(name string, options *Options, after <-chan struct{}) *worker {
	wake := options.Clock.NewTimer(options.Backoff.Max)
	wake.Stop()
	return &worker{
		name:    name,
		options: options,
		rules:   rules{threshold: options.FailureThreshold, interval: options.ProbeInterval, backoff: options.Backoff},
		limiter: newLimiter(options.QPS, options.Burst),
		log:     options.Log.WithValues("worker", name),
		after:   after,
		done:    make(chan struct{}),
		state:   newState(options.Clock.Now()),
		signal:  make(chan struct{}, 1),
		cancel:  func() {},
		wake:    wake,
	}
}

// newLimiter limits nothing for a negative qps, as client-go does.
func newLimiter(qps float32, burst int) flowcontrol.RateLimiter {
	if qps < 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(qps, burst)
}

// set takes new credentials in.
func (w *worker) set(config *rest.Config, fingerprint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	renews := w.link != nil && samePlace(w.config, config)
	w.config = config
	w.transitLocked(event{kind: eventSet, fingerprint: fingerprint, renews: renews})
}

// established takes a finished connection in. It is published only if it is still wanted.
func (w *worker) established(session uint64, made link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.phase == phaseConnecting && w.state.session == session {
		w.link = made
	}
	w.transitLocked(event{kind: eventSynced, session: session})
}

// handle takes an event in. It never blocks.
func (w *worker) handle(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transitLocked(e)
}

func (w *worker) transitLocked(e event) {
	before := w.state
	after, effects := next(w.rules, before, e, w.options.Clock.Now())
	w.state = after
	if !live(after) {
		w.link = nil
	}
	if before.phase != after.phase {
		w.log.V(1).Info("Connection changed", "from", before.phase.String(), "to", after.phase.String(), "message", after.message)
	}
	for _, ef := range effects {
		w.pushLocked(ef)
	}
}

func (w *worker) pushLocked(ef effect) {
	w.pending = append(w.pending, step{
		effect: ef, session: w.state.session, config: w.config, link: w.link, status: statusOf(w.state),
		last: w.state.phase == phaseRemoved && ef.kind == effectNotify,
	})
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *worker) status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return statusOf(w.state)
}

func (w *worker) connection() (Conn, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.link == nil {
		return nil, false
	}
	return w.link, true
}

// run carries out effects until ctx ends or the worker is removed, and leaves no goroutine behind.
func (w *worker) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer close(w.done)
	defer forget(w.name)
	defer w.wake.Stop()
	defer w.tasks.Wait()
	defer stop()
	if w.after != nil {
		<-w.after
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake.C():
			w.handle(event{kind: eventWake})
		case <-w.signal:
			for _, s := range w.take() {
				w.carryOut(ctx, s)
				if s.last {
					return
				}
			}
		}
	}
}

func (w *worker) renew(s step) {
	w.log.V(1).Info("New credentials for the same server, the connection goes on")
	if err := s.link.renew(s.config); err != nil {
		w.handle(event{kind: eventBroken, session: s.session, message: describe(s.config, err)})
	}
}

// isRenewed tells whether the credentials that a step went with are those of before.
func (w *worker) isRenewed(s step) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.config != s.config
}

func (w *worker) take() []step {
	w.mu.Lock()
	defer w.mu.Unlock()
	steps := w.pending
	w.pending = nil
	return steps
}

func (w *worker) carryOut(ctx context.Context, s step) {
	switch s.kind {
	case effectConnect:
		w.attempt, w.cancel = context.WithCancel(ctx)
		within := w.attempt
		w.tasks.Go(func() { w.connect(within, s) })
	case effectClose:
		w.cancel()
	case effectProbe:
		within := w.attempt
		w.tasks.Go(func() { w.probe(within, s) })
	case effectWake:
		w.wake.Stop()
		w.wake.Reset(s.after)
	case effectRenew:
		w.renew(s)
	case effectLoss:
		countLoss(w.name)
	case effectNotify:
		showConnected(w.name, s.status)
		w.options.Events.State(w.name, s.status)
	}
}
