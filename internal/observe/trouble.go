package observe

import (
	"maps"
	"slices"
	"time"

	"ferry.dev/ferry/internal/kinds"
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
	t, found := m.troubles[at][what]
	if found && (t.why == why || now.Sub(t.said) < troubleStays) {
		return false
	}
	if m.troubles[at] == nil {
		m.troubles[at] = map[string]trouble{}
	}
	m.troubles[at][what] = trouble{why, now}
	return true
}

// Went notes that all writes to a worker went through or are not wanted any
// more, but for these.
func (m *Memory) Went(worker string, ref kinds.Ref, but ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	maps.DeleteFunc(m.troubles[at], func(what string, _ trouble) bool { return !slices.Contains(but, what) })
	if len(m.troubles[at]) == 0 {
		delete(m.troubles, at)
	}
}

// troubleOf says what does not go through to a worker; empty: nothing is known of.
func (m *Memory) troubleOf(worker string, ref kinds.Ref) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	troubles := m.troubles[place{worker, ref}]
	for _, what := range slices.Sorted(maps.Keys(troubles)) {
		return troubles[what].why
	}
	return ""
}
