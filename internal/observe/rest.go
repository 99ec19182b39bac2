package observe

import (
	"time"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

const (
	// A worker on which a job failed is not asked again for restsFor, and twice
	// as long after each further failure, up to restsMost.
	restsFor  = 30 * time.Second
	restsMost = 16 * restsFor
	// restsAnew is how long after a rest all must have gone well for the next one to be short again.
	restsAnew = 30 * time.Minute
)

// rest is for how long a worker is not asked to run a job, and why.
type rest struct {
	why   string
	until time.Time
	lasts time.Duration
}

// claim is since when this process knows that a worker holds a job's claim.
type claim struct {
	worker string
	since  time.Time
}

// Rest keeps a worker out of a job's nomination for a while.
func (m *Memory) Rest(worker string, ref kinds.Ref, r plan.Rest, now time.Time) {
	if m.rest(worker, ref, r, now) {
		m.tellKindsFail(worker)
	}
}

// rest notes it, and tells whether the worker rests for the whole kind by that.
func (m *Memory) rest(worker string, ref kinds.Ref, r plan.Rest, now time.Time) (ofKind bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.noteOn(worker, ref)
	last := t.rest
	switch {
	case now.Sub(last.until) < restsAnew:
		last.lasts = min(max(2*last.lasts, restsFor), restsMost)
	case r.Lenient:
		last.lasts = 0
	default:
		last.lasts = restsFor
	}
	t.rest = rest{r.Why, now.Add(last.lasts), last.lasts}
	return r.OfKind && m.failed(place{worker, ref}, r.Why, now)
}

// resting is the rest that a worker has now; what is over is kept, as the next one lasts longer.
func (m *Memory) resting(worker string, ref kinds.Ref, now time.Time) (rest, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.readOn(worker, ref)
	if t == nil || !now.Before(t.rest.until) {
		return rest{}, false
	}
	return t.rest, true
}

// claimedSince is since when this process knows that the worker holds the job's
// claim; zero when nobody holds it.
func (m *Memory) claimedSince(ref kinds.Ref, worker string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.jobs[ref]
	if worker == "" && k == nil {
		return time.Time{}
	}
	if worker == "" {
		k.claim = claim{}
		return time.Time{}
	}
	k = m.note(ref)
	if k.claim.worker != worker {
		k.claim = claim{worker, now}
	}
	return k.claim.since
}
