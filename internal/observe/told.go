package observe

import (
	"slices"
	"sync"

	"ferry.dev/ferry/internal/kinds"
)

// told is the warnings that users got about each job. The zero value is ready to use.
type told struct {
	mu    sync.Mutex
	about map[kinds.Ref][]string
}

func (t *told) add(ref kinds.Ref, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.about == nil {
		t.about = map[kinds.Ref][]string{}
	}
	t.about[ref] = append(slices.Clone(t.about[ref]), message)
}

func (t *told) of(ref kinds.Ref) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.about[ref]
}

func (t *told) forget(ref kinds.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.about, ref)
}
