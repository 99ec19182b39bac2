package observe

import (
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// timed are the conditions of copies from which something is counted.
var timed = []string{kueue.WorkloadAdmitted, kueue.WorkloadEvicted, kueue.WorkloadFinished, kueue.WorkloadBlockedOnPreemptionGates}

// noteSince adds to the Snapshot when this process first saw what holds of a worker's copies: what is counted from
// there must not depend on the worker's clock.
func (o *Observer) noteSince(s *look, w *plan.Worker) {
	var facts []plan.Fact
	for _, c := range w.Workloads {
		for _, condition := range timed {
			if fact, holds := plan.FactOf(c, condition); holds {
				facts = append(facts, fact)
			}
		}
	}
	for _, job := range w.Jobs {
		if fact, holds := plan.Restless(s.Kind, job); holds {
			facts = append(facts, fact)
		}
	}
	if !s.known && len(facts) == 0 {
		return
	}
	for fact, at := range o.Memory.since(w.Name, s.Ref, facts, s.Now) {
		if s.Since == nil {
			s.Since = map[plan.Fact]time.Time{}
		}
		s.Since[fact] = at
	}
}

// since tells when facts about a job on a worker were first seen; it forgets all other such facts.
func (m *Memory) since(worker string, ref kinds.Ref, facts []plan.Fact, now time.Time) map[plan.Fact]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(facts) == 0 {
		if on := m.readOn(worker, ref); on != nil {
			on.facts = nil
			m.tidy(worker, ref)
		}
		return nil
	}
	on := m.noteOn(worker, ref)
	present := make(map[plan.Fact]time.Time, len(facts))
	for _, fact := range facts {
		first, known := on.facts[fact]
		if !known {
			first = now
		}
		present[fact] = first
	}
	on.facts = present
	return present
}
