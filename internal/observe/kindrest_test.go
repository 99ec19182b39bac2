package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestAKindRestsWhereItsJobsFail: not by one job however often, nor where one ran meanwhile, nor by faults of the jobs themselves.
func TestAKindRestsWhereItsJobsFail(t *testing.T) {
	for name, test := range map[string]struct {
		does  func(fail func(job int, r plan.Rest), runs func())
		rests bool
	}{
		"three jobs": {func(fail func(int, plan.Rest), _ func()) { fail(1, placing); fail(2, placing); fail(3, placing) }, true},
		"two jobs":   {func(fail func(int, plan.Rest), _ func()) { fail(1, placing); fail(2, placing) }, false},
		"one job":    {func(fail func(int, plan.Rest), _ func()) { fail(1, placing); fail(1, placing); fail(1, placing) }, false},
		"one ran meanwhile": {func(fail func(int, plan.Rest), runs func()) {
			fail(1, placing)
			fail(2, placing)
			runs()
			fail(3, placing)
		}, false},
		"by faults of their own": {func(fail func(int, plan.Rest), _ func()) { fail(1, refusal); fail(2, refusal); fail(3, refusal) }, false},
		"one ran after the third": {func(fail func(int, plan.Rest), runs func()) {
			fail(1, placing)
			fail(2, placing)
			fail(3, placing)
			runs()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, told := NewMemory(), 0
			m.OnKindsFail(func(string) { told++ })
			test.does(func(job int, r plan.Rest) { m.Rest("w1", numbered(job), r, start) }, func() { m.runs("w1", train.Kind) })
			_, rests := m.takeTurn("w1", numbered(9), start.Add(time.Second))
			if said := m.FailingKinds("w1"); rests != test.rests || (said != "") != test.rests || test.rests && told != 1 {
				t.Errorf("rests: %v, says %q, told %d times", rests, said, told)
			}
			for _, other := range []place{{"w2", numbered(9)}, {"w1", kinds.Ref{Kind: "JobSet.jobset.x-k8s.io", Namespace: "team-a", Name: "set"}}} {
				if _, rests := m.takeTurn(other.cluster, other.ref, start); rests {
					t.Errorf("%v rests too", other)
				}
			}
			if rests && allRest(m, start.Add(10*time.Minute)) {
				t.Error("nobody tries whether it works again")
			}
		})
	}
}

// TestOneJobTriesAKindAgain: while it tries, the others are not offered there; when it fails, the next rest is longer.
func TestOneJobTriesAKindAgain(t *testing.T) {
	m := NewMemory()
	for job := range 3 {
		m.Rest("w1", numbered(job), placing, start)
	}
	over := start.Add(restsFor)
	if _, rests := m.takeTurn("w1", numbered(7), over); rests {
		t.Fatal("the first job that looks after the rest may not try")
	}
	if r, rests := m.takeTurn("w1", numbered(8), over); !rests || !strings.Contains(r.why, "one after the other") {
		t.Fatal("another job tries beside it")
	}
	if _, rests := m.takeTurn("w1", numbered(7), over.Add(time.Second)); rests {
		t.Fatal("the one that tries is stopped")
	}
	m.Rest("w1", numbered(7), placing, over)
	if r, rests := m.takeTurn("w1", numbered(7), over); !rests || r.until.Sub(over) != 2*restsFor {
		t.Errorf("the next rest lasts until %s", r.until)
	}
	if _, rests := m.takeTurn("w1", numbered(7), over.Add(2*restsFor)); rests {
		t.Fatal("nobody may try again")
	}
	if _, rests := m.takeTurn("w1", numbered(8), over.Add(2*restsFor+probesFor)); rests {
		t.Error("one that does not come to a result is waited for without end")
	}
	m.Vacated("w1")
	if m.FailingKinds("w1") != "" {
		t.Error("a worker that is gone is remembered")
	}
}

var (
	placing = plan.Rest{Why: "this job could not be placed there", OfKind: true}
	refusal = plan.Rest{Why: "refused the copy"}
)

func numbered(job int) kinds.Ref {
	ref := train
	ref.Name = fmt.Sprint("train-", job)
	return ref
}

// allRest tells whether all of several jobs are kept off w1.
func allRest(m *Memory, now time.Time) bool {
	return !slices.ContainsFunc([]int{20, 21}, func(job int) bool {
		_, rests := m.takeTurn("w1", numbered(job), now)
		return !rests
	})
}
