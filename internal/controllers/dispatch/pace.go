package dispatch

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/plan"
)

// What only informs is written once a minute for a Workload, but for the first few times, and for all
// of them together no more often than every informGap: it never takes the place of what moves jobs.
const (
	informEvery = time.Minute
	informBurst = 3
	informGap   = 20 * time.Millisecond
)

// pace holds back writes that have time.
type pace struct {
	mu     sync.Mutex
	told   map[types.UID]told // what Workloads had of the budget for information
	latest time.Time          // the last turn that was given for information
	swept  time.Time
}

// told is what one Workload had of the budget.
type told struct {
	spent time.Time // when all that it had is earned again
	turn  time.Time // when the write that waits now is due; zero: none does
}

// hold tells how long an action still has to wait; zero: it is due.
func (p *pace) hold(action plan.Action, now time.Time) time.Duration {
	if a, is := action.(plan.SetCheck); is && a.Informs {
		return p.inform(a.Workload.UID, now)
	}
	return 0
}

// inform tells when a Workload may be told something.
func (p *pace) inform(uid types.UID, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// failed gives back what was spent for nothing, and tells whether the action only informs.
func (p *pace) failed(action plan.Action) (informs bool) {
	a, is := action.(plan.SetCheck)
	if !is || !a.Informs {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.told[a.Workload.UID]
	t.spent = t.spent.Add(-informEvery)
	p.told[a.Workload.UID] = t
	return true
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
