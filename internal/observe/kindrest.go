package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

const (
	// kindFails is how many jobs of one kind have to fail on a worker, and none run there meanwhile, for the worker
	// to rest for the whole kind.
	kindFails = 3
	// probesFor is how long one job may try whether the kind works again before another one may.
	probesFor = 2 * time.Minute
)

// onKind is a kind of jobs on a worker.
type onKind struct{ worker, kind string }

// failing is what is known of a kind whose jobs fail on a worker. The first job that runs there ends it.
type failing struct {
	jobs  map[kinds.Ref]bool
	rest  rest
	probe kinds.Ref // the job that tries it after a rest, one at a time
	since time.Time // of the probe
}

// KindsFail is told when the jobs of a kind begin to fail on a worker, fail again, or run there again.
type KindsFail func(worker string)

// OnKindsFail sets who is told; it is called once, before anything else.
func (m *Memory) OnKindsFail(told KindsFail) { m.kindsFail = told }

// failed notes that a job failed on a worker, and tells whether the worker's rest for the kind begins by that; the lock is held.
func (m *Memory) failed(at place, why string, now time.Time) (rests bool) {
	key := onKind{at.cluster, at.ref.Kind}
	f := m.failing[key]
	if f == nil {
		f = &failing{jobs: map[kinds.Ref]bool{}}
		m.failing[key] = f
	}
	if len(f.jobs) < kindFails {
		f.jobs[at.ref] = true
	}
	f.rest.why = why
	if len(f.jobs) < kindFails || now.Before(f.rest.until) {
		return false
	}
	f.probe = kinds.Ref{}
	f.rest.lasts = min(max(2*f.rest.lasts, restsFor), restsMost)
	f.rest.until = now.Add(f.rest.lasts)
	return true
}

// runs notes that a job runs on a worker, or ran there.
func (m *Memory) runs(worker, kind string) {
	m.mu.Lock()
	f := m.failing[onKind{worker, kind}]
	delete(m.failing, onKind{worker, kind})
	m.mu.Unlock()
	if f != nil && !f.rest.until.IsZero() {
		m.tellKindsFail(worker)
	}
}

func (m *Memory) tellKindsFail(worker string) {
	if m.kindsFail != nil {
		m.kindsFail(worker)
	}
}

// takeTurn is the rest that a worker has for all jobs of the kind. Once it is over, the job that asks first has the
// turn to try, which this notes, and the others wait for what becomes of it.
func (m *Memory) takeTurn(worker string, ref kinds.Ref, now time.Time) (rest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.failing[onKind{worker, ref.Kind}]
	if f == nil || f.rest.until.IsZero() {
		return rest{}, false
	}
	r, rests := f.restFor(ref, now)
	if !rests && f.probe != ref {
		f.probe, f.since = ref, now
	}
	return r, rests
}

// restFor is the rest that the kind has as far as this job goes.
func (f *failing) restFor(ref kinds.Ref, now time.Time) (rest, bool) {
	until := f.rest.until
	if !now.Before(until) {
		if f.probe == (kinds.Ref{}) || f.probe == ref || now.Sub(f.since) >= probesFor {
			return rest{}, false
		}
		until = f.since.Add(probesFor)
	}
	return rest{why: reason.KindFailsThere(f.rest.why), until: until}, true
}

// failsAny tells whether jobs failed on a worker lately, which is seldom so.
func (m *Memory) failsAny(worker string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := range m.failing {
		if at.worker == worker {
			return true
		}
	}
	return false
}

// restForKind is the rest of a worker for the kind of a job that is on offer; none for one that the worker has.
func (o *Observer) restForKind(s *plan.Snapshot, w *plan.Worker) (rest, bool) {
	if !o.Memory.failsAny(w.Name) || claimOf(s.Workloads) != "" || !slices.ContainsFunc(s.Workloads, isOnOffer) {
		return rest{}, false
	}
	return o.Memory.takeTurn(w.Name, s.Ref, s.Now)
}

// FailingKinds says for which kinds a worker rests, and why; empty if for none.
func (m *Memory) FailingKinds(worker string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var said []string
	for key, f := range m.failing {
		if key.worker == worker && !f.rest.until.IsZero() {
			said = append(said, fmt.Sprintf("%s: %s", key.kind, reason.AskedAgain(f.rest.why, f.rest.until)))
		}
	}
	slices.SortFunc(said, cmp.Compare[string])
	return strings.Join(said, "; ")
}
