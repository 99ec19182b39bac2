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
	on := m.noteOn(worker, ref)
	t, found := on.troubles[what]
	if found && (t.why == why || now.Sub(t.said) < troubleStays) {
		return false
	}
	if on.troubles == nil {
		on.troubles = map[string]trouble{}
	}
	on.troubles[what] = trouble{why, now}
	return true
}

// Went notes that all writes to a worker went through or are not wanted any
// more, but for these.
func (m *Memory) Went(worker string, ref kinds.Ref, but ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on := m.readOn(worker, ref); on != nil {
		maps.DeleteFunc(on.troubles, func(what string, _ trouble) bool { return !slices.Contains(but, what) })
		m.tidy(worker, ref)
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
	k := m.note(ref)
	r, found := k.refusals[uid]
	if !found || !kinds.EqualStatus(r.Asked, asked) {
		r.Asked, r.Tries, r.Since = asked, 0, now
	}
	r.Tries, r.Final, r.Why = r.Tries+1, final, why
	r.Lasts = min(max(2*r.Lasts, refusedFor), refusedMost)
	r.Again = now.Add(r.Lasts)
	if k.refusals == nil {
		k.refusals = map[types.UID]plan.Refusal{}
	}
	k.refusals[uid] = r
	return !found
}

func (m *Memory) refusalsOf(ref kinds.Ref) map[types.UID]plan.Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.read(ref).refusals)
}

// troubleOf says what does not go through to a worker; empty: nothing is known of.
func (m *Memory) troubleOf(worker string, ref kinds.Ref) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	on := m.readOn(worker, ref)
	if on == nil || len(on.troubles) == 0 {
		return ""
	}
	return on.troubles[slices.Min(slices.Collect(maps.Keys(on.troubles)))].why
}
