package plan_test

import (
	"testing"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestWaitsCountFromWhenSeenHere: clocks of workers may be hours off.
func TestWaitsCountFromWhenSeenHere(t *testing.T) {
	for _, off := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
		for ago, want := range map[time.Duration]string{
			time.Second:      "Nominate | again in 29s",
			29 * time.Second: "Nominate | again in 1s",
			31 * time.Second: "Nominate | w1: delete Workload wl",
		} {
			s := snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), message("Offered to w1 (evicted there, will be asked again); w2; w3"),
				copies("w1", func(c *kueue.Workload) { setCondition(c, kueue.WorkloadEvicted, true, "Preempted", off) }))
			seen(&s, kueue.WorkloadEvicted, ago)
			if ago > 30*time.Second {
				message("Offered to w1; w2; w3")(&s)
			}
			if got := show(plan.Decide(s)); got != want {
				t.Errorf("evicted %s ago, by a clock that is %s off: %s, want %s", ago, off, got, want)
			}
		}
		for ago, want := range map[time.Duration]string{
			time.Second:     "FinishedOnWorker | again in 2s",
			4 * time.Second: "FinishedOnWorker | manager: finish wl",
		} {
			s := snap(claimedBy("w1"), started, managerStatus(ended), jobStatus("w1", ended), finishedOn("w1", off))
			seen(&s, kueue.WorkloadFinished, ago)
			if got := show(plan.Decide(s)); got != want {
				t.Errorf("finished %s ago, by a clock that is %s off: %s, want %s", ago, off, got, want)
			}
		}
		s := snap(nominated("w1", "w2"), offered("w1", "w2"), admitted("w1", off), admitted("w2", 0))
		seen(&s, kueue.WorkloadAdmitted, time.Minute, "w2")
		seen(&s, kueue.WorkloadAdmitted, time.Second, "w1")
		if got := show(plan.Decide(s)); got != "AdmittedSomewhere | manager: claim wl for w2" {
			t.Errorf("with a clock that is %s off: %s", off, got)
		}
	}
}

// TestComesToRestByOurClock: a job that is over and shows something running stays for a while from when that was
// seen here, whatever its worker's clock says.
func TestComesToRestByOurClock(t *testing.T) {
	for _, k := range kinds.NewTable(kinds.Frameworks()).Rows() {
		if len(k.Running) == 0 {
			continue
		}
		gone := "Over | manager: mirror status of " + k.GVK.Kind + " train | w1: delete " + k.GVK.Kind + " train, delete Workload wl"
		for _, off := range []time.Duration{-3 * time.Hour, 0, 3 * time.Hour} {
			for ago, want := range map[time.Duration]string{time.Second: "Over | again in 29s", 31 * time.Second: gone} {
				s := restless(k, 2, 2, off)
				fact, holds := plan.Restless(k, s.Workers[0].Jobs[0])
				if !holds {
					t.Fatalf("%s is at rest", k.Name())
				}
				s.Since = map[plan.Fact]time.Time{fact: now.Add(-ago)}
				if got := show(plan.Decide(s)); got != want {
					t.Errorf("%s, over for %s, by a clock that is %s off: %s, want %s", k.Name(), ago, off, got, want)
				}
			}
		}
	}
}

// seen says since when this process knows of a condition, of all workers' copies or those of some.
func seen(s *plan.Snapshot, condition string, ago time.Duration, workers ...string) {
	if s.Since == nil {
		s.Since = map[plan.Fact]time.Time{}
	}
	for _, w := range s.Workers {
		for _, c := range w.Workloads {
			if fact, holds := plan.FactOf(c, condition); holds && (len(workers) == 0 || w.Name == workers[0]) {
				s.Since[fact] = now.Add(-ago)
			}
		}
	}
}
