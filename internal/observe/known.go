package observe

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// known is what is known of one job. It is one record, as a job is forgotten at once.
type known struct {
	// host is the worker that was last seen to hold the claim, and claim since when this process knows of it.
	host  string
	claim claim
	// past are the claims that were seen. What is in it is never changed, only replaced.
	past map[types.UID]plan.Past
	// told are the warnings that the job's users got; never changed in place.
	told []string
	// unstarted is where the job was placed and has not run.
	unstarted string
	pruned    map[types.UID]plan.Pruned
	// refusals are those of statuses by the manager.
	refusals map[types.UID]plan.Refusal
	// hashes are those of the specs of the job's Workloads. What is in it is never changed, only replaced.
	hashes hashes
	on     map[string]*there
}

// there is what is known of a job on one worker.
type there struct {
	missing time.Time
	sought  plan.Sought
	gone    time.Time
	rest    rest
	// asked is what the worker said about the job while it did not start.
	asked asked
	// troubles are the writes that do not go through, by what they are.
	troubles map[string]trouble
	// facts are when the conditions of copies were first seen to hold; never changed in place.
	facts map[plan.Fact]time.Time
}

func (t *there) isEmpty() bool {
	return t.missing.IsZero() && t.sought == (plan.Sought{}) && t.gone.IsZero() && t.rest == (rest{}) && t.asked == (asked{}) &&
		len(t.troubles) == 0 && len(t.facts) == 0
}

// note is the record of a job, made if there is none; the lock is held.
func (m *Memory) note(ref kinds.Ref) *known {
	k := m.jobs[ref]
	if k == nil {
		k = &known{}
		m.jobs[ref] = k
	}
	return k
}

// read is the record of a job, or an empty one that is not kept; the lock is held.
func (m *Memory) read(ref kinds.Ref) *known {
	if k := m.jobs[ref]; k != nil {
		return k
	}
	return &known{}
}

// noteOn is the record of a job on a worker, made if there is none; the lock is held.
func (m *Memory) noteOn(worker string, ref kinds.Ref) *there {
	k := m.note(ref)
	t := k.on[worker]
	if t == nil {
		if k.on == nil {
			k.on = map[string]*there{}
		}
		t = &there{}
		k.on[worker] = t
	}
	return t
}

// readOn is the record of a job on a worker; nil if nothing is known. The lock is held.
func (m *Memory) readOn(worker string, ref kinds.Ref) *there {
	if k := m.jobs[ref]; k != nil {
		return k.on[worker]
	}
	return nil
}

// knows tells whether anything is known of a job on a worker. Of most jobs on most workers nothing is, and a look goes
// over all of them.
func (m *Memory) knows(worker string, ref kinds.Ref) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readOn(worker, ref) != nil
}

// tidy drops the record of a job on a worker once nothing is in it; the lock is held.
func (m *Memory) tidy(worker string, ref kinds.Ref) {
	if k := m.jobs[ref]; k != nil && k.on[worker] != nil && k.on[worker].isEmpty() {
		delete(k.on, worker)
	}
}

// Told notes that a job's users were warned.
func (m *Memory) Told(ref kinds.Ref, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.note(ref)
	k.told = append(slices.Clone(k.told), message)
}

func (m *Memory) toldOf(ref kinds.Ref) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read(ref).told
}
