package world

import (
	"slices"
	"time"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cache"
)

// step is one thing that could happen next.
type step struct {
	who, what string
	do        func()
	// choice is set for what somebody decides, as against what follows by itself.
	choice bool
}

// steps lists everything that could happen next without anybody's doing.
func (w *World) steps() []step {
	steps := append(w.kueueSteps(), w.externalSteps()...)
	for i := range w.late {
		steps = append(steps, step{who: "network", what: w.late[i].what, do: func() { w.Land(i) }})
	}
	if w.ferry == nil {
		return steps
	}
	steps = append(steps, w.deliveries(ManagerName, w.ferry.cache)...)
	for _, name := range w.names {
		worker := w.workers[name]
		if l := worker.link; l != nil && !worker.Cut {
			steps = append(steps, w.deliveries(name, l.cache)...)
		}
		steps = append(steps, w.fleetSteps(worker)...)
	}
	return append(steps, w.ferry.steps()...)
}

func (w *World) kueueSteps() []step {
	steps := make([]step, 0, 32)
	for _, s := range w.Kueue.Steps() {
		steps = append(steps, step{"manager", s.Name, s.Do, s.Choice})
	}
	for _, name := range w.names {
		for _, s := range w.workers[name].Kueue.Steps() {
			steps = append(steps, step{name, s.Name, s.Do, s.Choice})
		}
	}
	return steps
}

// deliveries are the events of a cache that could come next; Held keeps back
// those of a cluster, or of one of its streams.
func (w *World) deliveries(from string, c *cache.Cache) []step {
	if w.Held[from] {
		return nil
	}
	var steps []step
	for i := range c.Pending() {
		if len(w.Held) > 0 && w.Held[from+" "+c.PendingStream(i)] {
			continue
		}
		steps = append(steps, step{who: from, what: "event", do: func() { c.Deliver(i, w.chance(200)) }})
	}
	return steps
}

func (w *World) fleetSteps(worker *Worker) []step {
	name := worker.Name
	switch {
	case !slices.Contains(w.configured, name):
		return nil
	case w.isWithdrawn(worker):
		return []step{{who: "ferry", what: "let go of " + name, do: func() { w.letGo(name) }}}
	case worker.link == nil && !worker.Cut:
		return []step{{who: "fleet", what: "connect " + name, do: func() { w.Connect(name) }}}
	case worker.link != nil && worker.Cut:
		return []step{{who: "fleet", what: "notice " + name, do: func() { w.Notice(name) }}}
	case worker.link != nil && !worker.link.jobs && !w.Held["sync "+name]:
		return []step{{who: "fleet", what: "sync " + name, do: func() { w.SyncJobs(name) }}}
	}
	return nil
}

func (f *ferry) steps() []step {
	steps := f.drainSteps()
	for _, name := range f.names {
		q := f.queues[name]
		for _, ref := range q.ready {
			if !slices.Contains(f.busy[name], ref) {
				steps = append(steps, step{who: queueName(name), what: ref.Name, do: func() { f.run(name, ref) }})
			}
		}
	}
	return steps
}

func (f *ferry) run(queue string, ref kinds.Ref) {
	q := f.queues[queue]
	q.take(slices.Index(q.ready, ref))
	f.world.moved = f.world.depth > 0
	f.reconcile(queue, ref)
	f.world.afterReconcile(queue, ref)
}

// StepOnce lets one random thing happen; false when nothing can.
func (w *World) StepOnce() bool {
	steps := w.steps()
	if len(steps) == 0 {
		return false
	}
	s := steps[w.rand.IntN(len(steps))]
	for range 4 {
		// What is slow for a while lets the rest of the world run far ahead.
		if w.slow == "" || s.who != w.slow {
			break
		}
		s = steps[w.rand.IntN(len(steps))]
	}
	w.Tracef("%s: %s", s.who, s.what)
	s.do()
	return true
}

// Settle lets everything happen that follows by itself, in a fixed order, and
// waits for what Ferry itself waits for no longer than patience. Choices are
// made only when choose is set. It returns false when it comes to no end.
func (w *World) Settle(choose bool, patience time.Duration) bool {
	until := w.Clock.Now().Add(patience)
	for range 20000 {
		if w.Most >= endless {
			return false
		}
		if s, found := w.firstStep(choose); found {
			w.Tracef("%s: %s", s.who, s.what)
			s.do()
			continue
		}
		at := time.Time{}
		if w.ferry != nil {
			at = w.ferry.nextWake()
		}
		if at.IsZero() || at.After(until) {
			return true
		}
		w.Advance(max(at.Sub(w.Clock.Now()), 0))
	}
	return false
}

func (w *World) firstStep(choose bool) (step, bool) {
	for _, s := range w.steps() {
		if !s.choice || choose {
			return s, true
		}
	}
	return step{}, false
}
