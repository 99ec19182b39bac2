package observe

import (
	"maps"
	"slices"

	"ferry.dev/ferry/internal/kinds"
)

// Move notes that a job is to leave a worker that is being drained.
func (m *Memory) Move(worker string, ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moves[worker] == nil {
		m.moves[worker] = map[kinds.Ref]bool{}
	}
	m.moves[worker][ref] = true
}

// Moved forgets that jobs are to leave a worker: they have a place elsewhere, or it is drained no longer.
func (m *Memory) Moved(worker string, refs ...kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range refs {
		delete(m.moves[worker], ref)
	}
	if len(m.moves[worker]) == 0 {
		delete(m.moves, worker)
	}
}

// Moves lists the jobs that are to leave a worker.
func (m *Memory) Moves(worker string) []kinds.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.moves[worker]))
}

// moving tells whether a job is to leave a worker.
func (m *Memory) moving(worker string, ref kinds.Ref) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moves[worker][ref]
}
