package lane

import (
	"hash/maphash"
	"sync"
	"time"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

const (
	// firstWait is how long an action waits that is asked for again at once; it is twice
	// as long each further time, up to mostWait.
	firstWait = cacheLag
	mostWait  = time.Minute
	// calm is after how many waits without it an action counts as new.
	calm = 4
)

// pace holds back what was asked of the worker just before: the answer brought the
// job no further, be it an error, a success that changed nothing, or one that
// somebody there took back.
type pace struct {
	mu    sync.Mutex
	asked map[kinds.Ref]map[uint64]turn // by what was asked
	swept time.Time
}

type turn struct {
	at   time.Time
	wait time.Duration
}

func (t turn) over(now time.Time) bool { return now.Sub(t.at) > calm*t.wait }

var seed = maphash.MakeSeed()

// hold tells how long an action still has to wait. Zero: it is due, and noted as carried out now.
func (p *pace) hold(ref kinds.Ref, action plan.Action, now time.Time) time.Duration {
	what := maphash.String(seed, plan.Asks(action))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	last, known := p.asked[ref][what]
	if left := last.at.Add(last.wait).Sub(now); known && left > 0 {
		return left
	}
	next := turn{now, firstWait}
	if known && !last.over(now) {
		next.wait = min(2*last.wait, mostWait)
	}
	if p.asked[ref] == nil {
		if p.asked == nil {
			p.asked = map[kinds.Ref]map[uint64]turn{}
		}
		p.asked[ref] = map[uint64]turn{}
	}
	p.asked[ref][what] = next
	return 0
}

// sweep forgets what counts as new by now, every now and then.
func (p *pace) sweep(now time.Time) {
	if now.Sub(p.swept) < mostWait {
		return
	}
	p.swept = now
	for ref, turns := range p.asked {
		for what, t := range turns {
			if t.over(now) {
				delete(turns, what)
			}
		}
		if len(turns) == 0 {
			delete(p.asked, ref)
		}
	}
}
