package observe

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// A worker is asked for warnings about a job after askFirst, and twice as late each further time, up to askMost.
const (
	askFirst = 10 * time.Second
	askMost  = 32 * askFirst
)

// asked is what a worker said about a job that does not start there.
type asked struct {
	warning string
	next    time.Time
	wait    time.Duration
}

// Warned notes the last warning that was found about a job on a worker; empty if there was none, or it could not be read.
func (m *Memory) Warned(worker string, ref kinds.Ref, warning string, now time.Time) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	a, _ := m.asked.at(at)
	changed = warning != "" && warning != a.warning
	if changed {
		a.warning = warning
	}
	a.wait = min(max(2*a.wait, askFirst), askMost)
	a.next = now.Add(a.wait)
	m.asked.put(at, a)
	return changed
}

// Placed notes that a job was placed on a worker just now: it has not run there yet.
func (m *Memory) Placed(worker string, ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unstarted[ref] = worker
}

// readStart tells how a job that was placed on the worker comes on there, and forgets what is over once it runs.
func (o *Observer) readStart(s *plan.Snapshot, w *plan.Worker) {
	if s.Kind == nil {
		return
	}
	furthest := kinds.StartUnknown
	for _, job := range w.Jobs {
		furthest = max(furthest, s.Kind.Start(job))
	}
	if slices.ContainsFunc(w.Pods, func(p *unstructured.Unstructured) bool { return s.Kind.PodKind().Start(p) >= kinds.HasRun }) {
		furthest = max(furthest, kinds.HasRun)
	}
	m, at := o.Memory, place{w.Name, s.Ref}
	if furthest >= kinds.HasRun {
		m.runs(w.Name, s.Ref.Kind)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if furthest >= kinds.HasRun && m.unstarted[s.Ref] == w.Name {
		delete(m.unstarted, s.Ref)
	}
	if furthest == kinds.PodsReady && len(w.Jobs) == 1 || len(w.Jobs) == 0 {
		m.asked.drop(at)
	}
	a, _ := m.asked.at(at)
	w.Warning, w.AskWarnings, w.NeverRan = a.warning, a.next, m.unstarted[s.Ref] == w.Name
}
