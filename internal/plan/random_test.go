package plan_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

// dice draws a Snapshot: mostly plausible, sometimes absurd. Its numbers are
// evenly spread, unlike rapid's own, which prefer small ones.
type dice struct {
	*rand.Rand
	n int
}

// in10 is true n times out of ten.
func (d *dice) in10(n int) bool { return d.IntN(10) < n }

func (d *dice) seconds(most int) time.Duration { return time.Duration(d.IntN(most+1)) * time.Second }

func oneOf[T any](d *dice, from ...T) T { return from[d.IntN(len(from))] }

func (d *dice) snapshot() plan.Snapshot {
	s := snap()
	names := []string{"w1", "w2", "w3", "w4"}[:d.IntN(5)]
	s.Workloads = nil
	for i := range oneOf(d, 1, 1, 1, 2, 2, 0) {
		s.Workloads = append(s.Workloads, newWorkload(fmt.Sprintf("wl%d", i)))
	}
	d.manager(&s, names)
	if s.Host == "" && d.in10(2) {
		d.siblings(&s)
	}
	if d.in10(2) {
		family(oneOf(d, "", "", "w1", "w9"), oneOf(d, "", "train-0"))(&s)
		manager(reservedJustNow)(&s)
	}
	s.Workers = nil
	for _, name := range names {
		s.Workers = append(s.Workers, d.worker(&s, name))
	}
	d.meanwhile(&s)
	return s
}

// siblings makes the job one of several Workloads that nobody claimed yet.
func (d *dice) siblings(s *plan.Snapshot) {
	s.Kind, s.Ref.Kind = lwsKind, lwsKind.Name()
	spec := s.Jobs[0].Object["spec"].(map[string]any)
	spec["replicas"] = int64(1 + d.IntN(3))
	if d.in10(2) {
		setHas(1)(s)
	}
}

func (d *dice) manager(s *plan.Snapshot, names []string) {
	s.Policy.Placement = oneOf[placement.Placement](d, placement.AllAtOnce{}, placement.Incremental{StepSize: 2, Round: time.Minute}, placement.External{})
	if d.in10(3) {
		started(s)
		managerStatus(oneOf(d, runs, runs, runs, ended))(s)
	}
	claimant := ""
	if d.in10(5) {
		claimant = oneOf(d, append([]string{"w9"}, names...)...)
	}
	s.Host = claimant
	s.ClaimedSince = now.Add(-d.seconds(120))
	for _, wl := range s.Workloads {
		d.workload(wl, names, claimant)
	}
}

func (d *dice) workload(wl *kueue.Workload, names []string, claimant string) {
	for _, name := range names {
		if d.in10(7) {
			wl.Status.NominatedClusterNames = append(wl.Status.NominatedClusterNames, name)
		}
	}
	if claimant != "" && d.in10(9) {
		wl.Status.ClusterName = &claimant
	}
	our := &wl.Status.AdmissionChecks[0]
	our.LastTransitionTime.Time = now.Add(-d.seconds(120))
	if d.in10(3) {
		our.State = oneOf(d, kueue.CheckStateReady, kueue.CheckStateReady, kueue.CheckStateRetry, kueue.CheckStateRejected)
	}
	if d.in10(2) {
		wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, kueue.AdmissionCheckState{
			Name: "budget", State: oneOf(d, kueue.CheckStateReady, kueue.CheckStatePending),
		})
	}
	if d.in10(1) {
		setCondition(wl, kueue.WorkloadFinished, true, "Succeeded", 0)
	}
	if d.in10(1) {
		setCondition(wl, kueue.WorkloadEvicted, true, "Preempted", 0)
	}
}

func (d *dice) worker(s *plan.Snapshot, name string) plan.Worker {
	w := plan.Worker{Name: name, InConfig: d.in10(9), LostSince: now.Add(-d.seconds(1800))}
	if !d.in10(8) {
		w.Unread = d.in10(3)
		return w
	}
	w.Reachable, w.Serves, w.Foreign = true, d.in10(9), d.in10(1)
	w.Blind = !w.Serves && d.in10(5)
	w.Leaving = d.in10(1)
	if d.in10(1) {
		refuses(s, &w)
	}
	w.Trouble = oneOf(d, "", "", "", "it fails")
	over := d.in10(2)
	for _, wl := range s.Workloads {
		if d.in10(7) {
			w.Workloads = append(w.Workloads, d.copy(s, wl, over))
		}
	}
	if len(s.Workloads) > 0 && !w.Blind && d.in10(4) {
		wl := s.Workloads[0]
		w.Jobs = []*unstructured.Unstructured{jobKind.Project(s.Jobs[0], wl, kinds.Marks{Origin: "m", Reservation: d.reservation(wl)})}
		w.Jobs[0].SetUID(d.uid())
		w.Jobs[0].Object["status"] = oneOf(d, map[string]any{}, runs, ended)
		if d.in10(1) {
			w.Jobs[0].SetDeletionTimestamp(&now0)
		}
	}
	d.takeover(s, &w)
	return w
}

// takeover makes some of it another program's, or gone.
func (d *dice) takeover(s *plan.Snapshot, w *plan.Worker) {
	if d.in10(1) {
		unmark(w)
	}
	if d.in10(2) {
		w.Workloads, w.Jobs = nil, nil
	}
	if d.in10(3) {
		w.Sought = plan.Sought{At: now, Origin: oneOf(d, "", "", "old", "m")}
	}
	if w.Foreign && len(s.Workloads) > 0 {
		w.Holder = plan.Holder{Origin: oneOf(d, "", "old"), Workload: oneOf(d, s.Workloads[0].Name, "other")}
	}
}

func (d *dice) copy(s *plan.Snapshot, wl *kueue.Workload, over bool) *kueue.Workload {
	c := kinds.ProjectWorkload(wl, s.Ref, kinds.Marks{Origin: "m", Reservation: d.reservation(wl)})
	c.UID = d.uid()
	if d.in10(7) {
		setCondition(c, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Minute)
	}
	if d.in10(6) {
		setCondition(c, kueue.WorkloadAdmitted, true, "Admitted", d.seconds(4))
	}
	if d.in10(1) {
		setCondition(c, kueue.WorkloadEvicted, true, "Preempted", 0)
	}
	if over {
		setCondition(c, kueue.WorkloadFinished, true, "Succeeded", d.seconds(10))
	} else if d.in10(1) {
		setCondition(c, kueue.WorkloadFinished, true, oneOf(d, "Succeeded", "OutOfSync", "OutOfSync", "OutOfSync", "FailedToStart", "OwnerNotFound", "New"), d.seconds(10))
	}
	if d.in10(1) {
		c.DeletionTimestamp = &now0
	}
	return c
}

func (d *dice) reservation(wl *kueue.Workload) string {
	if d.in10(1) {
		return "7-7"
	}
	return plan.Reservation(wl)
}

func (d *dice) uid() (uid types.UID) {
	d.n++
	return types.UID(fmt.Sprintf("uid-%d", d.n))
}

// meanwhile is what happened on the manager after the copies were made.
func (d *dice) meanwhile(s *plan.Snapshot) {
	for _, wl := range s.Workloads {
		if d.in10(1) {
			moreParallel(wl)
		}
		if d.in10(1) {
			wl.Status.Admission = nil
		}
		if d.in10(1) {
			wl.Status.AdmissionChecks = wl.Status.AdmissionChecks[1:]
		}
	}
	switch d.IntN(41) {
	case 0:
		s.Jobs = nil
	case 1:
		noKind(s)
	case 2:
		s.Check = ""
	case 3:
		s.Check, s.CheckUnknown = "", true
	case 4:
		s.Jobs[0].SetDeletionTimestamp(&now0)
	case 5:
		byUser(s.Jobs[0])
	case 6:
		s.Workloads = nil
	case 7:
		evictedSince()(s)
	case 8:
		unreadable(s)
	}
}
