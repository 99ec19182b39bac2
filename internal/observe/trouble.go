package observe

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// troubleStays bounds how often the words of one trouble change: errors carry ports and times.
const troubleStays = 30 * time.Second

// trouble is a write to a worker that does not go through, and is tried again.
type trouble struct {
	why  string
	said time.Time
}

// Failed notes that a write to a worker does not go through, and tells whether that is news.
func (m *Memory) Failed(worker string, ref kinds.Ref, what, why string, now time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	troubles, _ := m.troubles.at(at)
	t, found := troubles[what]
	if found && (t.why == why || now.Sub(t.said) < troubleStays) {
		return false
	}
	if troubles == nil {
		troubles = map[string]trouble{}
		m.troubles.put(at, troubles)
	}
	troubles[what] = trouble{why, now}
	return true
}

// Went notes that all writes to a worker went through or are not wanted any
// more, but for these.
func (m *Memory) Went(worker string, ref kinds.Ref, but ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	troubles, _ := m.troubles.at(at)
	maps.DeleteFunc(troubles, func(what string, _ trouble) bool { return !slices.Contains(but, what) })
	if len(troubles) == 0 {
		m.troubles.drop(at)
	}
}

// A status that was refused is tried again after refusedFor, and then after twice as long each time, up to refusedMost.
const (
	refusedFor  = time.Second
	refusedMost = 256 * refusedFor
)

// StatusRefused notes that the manager's API server does not take a status of an
// object, and tells whether that is news.
func (m *Memory) StatusRefused(ref kinds.Ref, uid types.UID, asked map[string]any, final bool, why string, now time.Time) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, found := m.refusals[ref][uid]
	if !found || !kinds.EqualStatus(r.Asked, asked) {
		r.Asked, r.Tries, r.Since = asked, 0, now
	}
	r.Tries, r.Final, r.Why = r.Tries+1, final, why
	r.Lasts = min(max(2*r.Lasts, refusedFor), refusedMost)
	r.Again = now.Add(r.Lasts)
	if m.refusals[ref] == nil {
		m.refusals[ref] = map[types.UID]plan.Refusal{}
	}
	m.refusals[ref][uid] = r
	return !found
}

func (m *Memory) refusalsOf(ref kinds.Ref) map[types.UID]plan.Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.refusals[ref])
}

// troubleOf says what does not go through to a worker; empty: nothing is known of.
func (m *Memory) troubleOf(worker string, ref kinds.Ref) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	troubles, _ := m.troubles.at(place{worker, ref})
	if len(troubles) == 0 {
		return ""
	}
	return troubles[slices.Min(slices.Collect(maps.Keys(troubles)))].why
}
