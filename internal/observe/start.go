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
	a := &m.noteOn(worker, ref).asked
	changed = warning != "" && warning != a.warning
	if changed {
		a.warning = warning
	}
	a.wait = min(max(2*a.wait, askFirst), askMost)
	a.next = now.Add(a.wait)
	return changed
}

// Placed notes that a job was placed on a worker just now: it has not run there yet.
func (m *Memory) Placed(worker string, ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(ref).unstarted = worker
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
	m := o.Memory
	if furthest >= kinds.HasRun {
		m.runs(w.Name, s.Ref.Kind)
	}
	isSettled := furthest == kinds.PodsReady && len(w.Jobs) == 1 || len(w.Jobs) == 0
	m.recallStart(s.Ref, w, furthest >= kinds.HasRun, isSettled)
}

// recallStart adds what is remembered of a job that was placed on the worker, and forgets what no longer counts: that it
// has not run once it has, and what the worker said once nothing is to be asked any more.
func (m *Memory) recallStart(ref kinds.Ref, w *plan.Worker, hasRun, isSettled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.jobs[ref]
	if k == nil {
		return
	}
	if hasRun && k.unstarted == w.Name {
		k.unstarted = ""
	}
	w.NeverRan = k.unstarted == w.Name
	on := k.on[w.Name]
	if on == nil {
		return
	}
	if isSettled {
		on.asked = asked{}
		m.tidy(w.Name, ref)
	}
	w.Warning, w.AskWarnings = on.asked.warning, on.asked.next
}
