package mirror

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/kinds"
)

// batch is how long changes of a running job's status are gathered before they
// are mirrored: a start and an end are several changes within milliseconds.
const batch = 100 * time.Millisecond

// pace holds back status writes that another one is likely to supersede.
type pace struct {
	mu    sync.Mutex
	since map[kinds.Ref]map[types.UID]time.Time // when a write to an object, held back, was first wanted
}

// hold tells how long the status of an object still has to wait; zero: it is due.
func (p *pace) hold(ref kinds.Ref, uid types.UID, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
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
