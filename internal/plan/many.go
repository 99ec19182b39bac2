package plan

import (
	"slices"
	"strings"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// many tells whether Workloads may come to the job and leave it while it runs, as
// the replicas of a LeaderWorkerSet do. They all go to the worker that runs it.
func (v *view) many() bool { return v.Kind != nil && v.Kind.Many() }

// setJoinersApart makes the rules see those Workloads of a job of many that run on
// its worker. Those that left (evicted, without quota, sent back) are as if they
// were not there, so that their copies go; those that come join below Claimed.
func (v *view) setJoinersApart() {
	if !v.many() || v.claim() == "" {
		return
	}
	v.Workloads = slices.DeleteFunc(slices.Clone(v.Workloads), v.isWithdrawn)
	var running, joining []*kueue.Workload
	for _, wl := range v.Workloads {
		switch {
		case v.hasLeft(wl):
		case wl.Status.ClusterName != nil || v.isWonTogether(wl):
			running = append(running, wl)
		default:
			joining = append(joining, wl)
		}
	}
	if len(running) > 0 {
		v.Workloads, v.joining = running, joining
	}
}

func (v *view) hasLeft(wl *kueue.Workload) bool {
	return isTrue(wl, kueue.WorkloadFinished) || isTrue(wl, kueue.WorkloadEvicted) || lacksQuota(wl) ||
		v.checkIs(wl, kueue.CheckStateRetry, kueue.CheckStateRejected)
}

// isWonTogether: the worker admitted this one with those that are claimed, and the
// write of its claim failed. The job is not placed before that is made up for.
func (v *view) isWonTogether(wl *kueue.Workload) bool {
	w := v.find(v.claim())
	return w != nil && w.Reachable && !w.Blind && len(w.Jobs) == 0 && slices.Contains(wl.Status.NominatedClusterNames, w.Name)
}

// isWithdrawn: the set was scaled down, and Kueue on the worker deleted the copy of
// a replica before Kueue on the manager deleted its Workload. It is not lost.
func (v *view) isWithdrawn(wl *kueue.Workload) bool {
	w := v.find(v.claim())
	return wl.Status.ClusterName != nil && w != nil && w.Reachable && byName(w.Workloads, wl.Name) == nil &&
		kinds.ReplicaOf(wl) >= v.expected()
}

// expected is how many Workloads the job is to have.
func (v *view) expected() int {
	n := 0
	for _, job := range v.Jobs {
		n += v.Kind.Expected(job)
	}
	return n
}

// letJoin brings further Workloads to the worker that runs the job, each in the
// order of any dispatch: nominated, copied, admitted there, claimed.
func (v *view) letJoin(p *Plan, w *Worker) {
	for _, wl := range v.joining {
		c := byName(v.joined[w.Name], wl.Name)
		switch {
		case len(v.waitsFor(wl)) > 0:
		case !slices.Equal(wl.Status.NominatedClusterNames, []string{w.Name}):
			p.manager(Nominate{Workload: wl, Check: v.Check, Workers: []string{w.Name}, Message: reason.Joins(w.Name)})
		case c == nil && v.rests(p, w):
			v.sayOf(p, wl, reason.JoinsLater(w.Name, w.Why))
		case c == nil:
			v.copyTo(p, w, wl)
		case isTrue(c, kueue.WorkloadAdmitted) && !isTrue(c, kueue.WorkloadEvicted) && c.DeletionTimestamp.IsZero():
			p.manager(Claim{Workload: wl, Check: v.Check, Worker: w.Name, Message: reason.Placing(w.Name)})
		}
	}
}

// reservation is what the copy of the job is marked with. For a job of many these
// are several, and one that still holds is enough to tell that the copy is of now.
func (v *view) reservation() string {
	if !v.many() {
		return Reservation(v.Workloads[0])
	}
	var all []string
	for _, wl := range v.Workloads {
		all = append(all, Reservation(wl))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

func (v *view) sharesReservation(job interface{ GetAnnotations() map[string]string }) bool {
	have := strings.Split(job.GetAnnotations()[kinds.ReservationAnnotation], ",")
	return slices.ContainsFunc(strings.Split(v.reservation(), ","), func(r string) bool { return r != "" && slices.Contains(have, r) })
}

// ownCopies makes the set an owner of its Workloads' copies, as it is where Kueue
// makes the Workload itself. Kueue lets the pods own a copy, and these come and go
// in a rollout: a Workload whose owners are all gone is deleted. Before the pods
// own it, Kueue may not know of that replica yet, and would delete the set's
// Workload of a replica that it does not know.
func (v *view) ownCopies(p *Plan, w *Worker) {
	if !v.many() || !isThere(w.Jobs[0]) {
		return
	}
	for _, c := range w.Workloads {
		if len(c.OwnerReferences) > 0 && !kinds.OwnedBy(c, w.Jobs[0]) && c.DeletionTimestamp.IsZero() {
			p.worker(w.Name, OwnWorkload{Copy: c, Owner: w.Jobs[0], Beside: true})
		}
	}
}

// lostOfMany sends those Workloads of a job of many back to the queue whose copy
// vanished, and tells whether it did so; the others run on.
func (v *view) lostOfMany(p *Plan, w *Worker) bool {
	lost := false
	for _, wl := range v.Workloads {
		if v.many() && len(w.Workloads) > 0 && byName(w.Workloads, wl.Name) == nil {
			v.settleOne(p, wl, kueue.CheckStateRetry, reason.CopyGone(w.Name, "Workload"), true)
			lost = true
		}
	}
	return lost
}

var waitForSiblings = Rule{
	Name: "WaitForSiblings",
	Doc:  "The job has several Workloads that all go to one worker, and not all of them exist yet: no worker is asked before they do.",
	decide: func(v *view, p *Plan) bool {
		if !v.many() {
			return false
		}
		want := v.expected()
		if len(v.Workloads) >= want {
			return false
		}
		v.removeFromAllBut(p)
		v.say(p, reason.WaitsForSiblings(len(v.Workloads), want))
		return true
	},
}
