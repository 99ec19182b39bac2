package dispatch

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// batch is how long changes of a running job's status are gathered before they
// are mirrored: a start and an end are several changes within milliseconds.
const batch = 100 * time.Millisecond

// What only informs is written once a minute for a Workload, but for the first few times, and for all
// of them together no more often than every informGap: it never takes the place of what moves jobs.
const (
	informEvery = time.Minute
	informBurst = 3
	informGap   = 20 * time.Millisecond
)

// pace holds back writes that another one is likely to supersede, or that have time.
type pace struct {
	mu     sync.Mutex
	since  map[kinds.Ref]map[types.UID]time.Time // when a write to an object, held back, was first wanted
	told   map[types.UID]told                    // what Workloads had of the budget for information
	latest time.Time                             // the last turn that was given for information
	swept  time.Time
}

// told is what one Workload had of the budget.
type told struct {
	spent time.Time // when all that it had is earned again
	turn  time.Time // when the write that waits now is due; zero: none does
}

// hold tells how long an action still has to wait; zero: it is due.
func (p *pace) hold(ref kinds.Ref, action plan.Action, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch a := action.(type) {
	case plan.SetCheck:
		if a.Informs {
			return p.inform(a.Workload.UID, now)
		}
	case plan.MirrorStatus:
		if !a.Urgent {
			return p.gather(ref, a.Job.GetUID(), now)
		}
	}
	return 0
}

// inform tells when a Workload may be told something.
func (p *pace) inform(uid types.UID, now time.Time) time.Duration {
	p.sweep(now)
	t := p.told[uid]
	if left := t.spent.Add(-(informBurst - 1) * informEvery).Sub(now); left > 0 {
		return left
	}
	if t.turn.IsZero() {
		t.turn = later(p.latest.Add(informGap), now)
		p.latest = t.turn
	}
	left := t.turn.Sub(now)
	if left <= 0 {
		t = told{spent: later(t.spent, now).Add(informEvery)}
	}
	p.told[uid] = t
	return max(left, 0)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// failed gives back what was spent for nothing.
func (p *pace) failed(action plan.Action) {
	if a, is := action.(plan.SetCheck); is && a.Informs {
		p.mu.Lock()
		defer p.mu.Unlock()
		t := p.told[a.Workload.UID]
		t.spent = t.spent.Add(-informEvery)
		p.told[a.Workload.UID] = t
	}
}

// sweep forgets those that earned everything again, every now and then.
func (p *pace) sweep(now time.Time) {
	if p.told == nil {
		p.told = map[types.UID]told{}
	}
	if now.Sub(p.swept) > informEvery {
		p.swept = now
		maps.DeleteFunc(p.told, func(_ types.UID, t told) bool {
			return t.spent.Before(now) && t.turn.Add(informEvery).Before(now)
		})
	}
}

// gather holds back a status for a moment, as more changes are likely to follow.
func (p *pace) gather(ref kinds.Ref, uid types.UID, now time.Time) time.Duration {
	first, waits := p.since[ref][uid]
	if !waits {
		first = now
		if p.since == nil {
			p.since = map[kinds.Ref]map[types.UID]time.Time{}
		}
		if p.since[ref] == nil {
			p.since[ref] = map[types.UID]time.Time{}
		}
		p.since[ref][uid] = first
	}
	if left := first.Add(batch).Sub(now); left > 0 {
		return left
	}
	delete(p.since[ref], uid)
	return 0
}

// settled forgets what was held back, as nothing is wanted any more.
func (p *pace) settled(ref kinds.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, ref)
}
