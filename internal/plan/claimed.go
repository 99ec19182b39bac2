package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

var claimed = Rule{
	Name: "Claimed",
	Doc:  "A worker holds the claim: it gets the job, then the check becomes Ready and the status is mirrored; the other workers remove their copies. If the copy vanished there, or the job cannot be created there within placeTimeout, the check becomes Retry, with a warning, and the worker rests for this job.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil {
			return false
		}
		v.removeFromAllBut(p, w.Name)
		return v.serveClaim(p, w)
	},
}

func (v *view) serveClaim(p *Plan, w *Worker) bool {
	ready := v.any(func(wl *kueue.Workload) bool { return v.checkIs(wl, kueue.CheckStateReady) })
	switch {
	case ready && v.isGoneAlone(p, w):
	case v.lostOfMany(p, w):
	case v.grow(p, w):
	case len(v.copies(w)) == 0:
		v.copyGone(p, w, "Workload")
	case w.Blind:
		p.Because = fmt.Sprintf("Worker %q cannot show the job now: %s", w.Name, w.Why)
	case len(w.Jobs) > 0:
		v.follow(p, w, ready)
	case ready:
		v.copyGone(p, w, v.Kind.GVK.Kind)
	case w.Foreign:
		v.retry(p, reason.Foreign(w.Name), true)
	case !w.Serves:
		v.retry(p, reason.Refused(w.Name, w.Why), true)
	default:
		v.place(p, w)
	}
	v.shrink(p, w)
	return true
}

// copyGone gives the job back, as something of it vanished on its worker.
func (v *view) copyGone(p *Plan, w *Worker, what string) {
	v.retryWithRest(p, w, reason.CopyGone(w.Name, what), Rest{Why: reason.CopyGoneHere(what), Lenient: true, OfKind: true})
}

// follow keeps the manager's job and its copy alike, once the copy has its Workload.
func (v *view) follow(p *Plan, w *Worker, ready bool) {
	switch {
	case v.link(p, w):
		v.confirm(p, w)
		v.followEdits(p, w)
		v.followMembers(p, w)
		v.ownCopies(p, w)
		v.letJoin(p, w)
	case !ready:
		v.limitPlacing(p, w, true)
	}
}

// place creates the job on the worker, as long as Kueue there keeps it admitted.
func (v *view) place(p *Plan, w *Worker) {
	p.Because = reason.Placing(w.Name)
	if !v.claimAll(p, w) {
		return
	}
	isReady := len(v.stale[w.Name]) == 0 && !slices.ContainsFunc(v.copies(w), func(c *kueue.Workload) bool { return !isTrue(c, kueue.WorkloadAdmitted) })
	if v.limitPlacing(p, w, !isReady || w.Trouble != "") || !isReady {
		return
	}
	for _, job := range v.Jobs {
		if isThere(job) && !v.allEnded(one(job)) {
			v.create(p, w, job)
		}
	}
}

// limitPlacing sends a job back that its worker admitted and does not let be
// placed, and tells whether it did so. A job that only waits its turn there has time.
func (v *view) limitPlacing(p *Plan, w *Worker, stuck bool) (over bool) {
	if !stuck || v.Policy.PlaceTimeout <= 0 {
		return false
	}
	if left := v.ClaimedSince.Add(v.Policy.PlaceTimeout).Sub(v.Now); left > 0 {
		p.again(left)
		if w.Trouble != "" && len(p.Manager) == 0 {
			v.say(p, reason.PlacingFails(w.Name, w.Trouble))
		}
		return false
	}
	clear(p.Workers)
	p.Manager = nil
	v.retryWithRest(p, w, reason.NotPlaced(w.Name, v.Policy.PlaceTimeout, w.Trouble), Rest{Why: reason.NotPlacedHere(w.Trouble), OfKind: true})
	return true
}

func (v *view) create(p *Plan, w *Worker, job *unstructured.Unstructured) {
	if v.rests(p, w) {
		return
	}
	marks := kinds.Marks{Origin: v.Policy.Origin, Worker: w.Name, Reservation: v.reservation()}
	p.worker(w.Name, CreateJob{Copy: v.Kind.Project(job, kinds.AsSubmitted(v.Workloads[0], v.earlier(w)), marks)})
}

// claimAll tells whether the claim of every Workload is persisted. One of several
// writes may have failed: it is made up for, or, where the nomination that it
// rests on is gone, the job is offered again.
func (v *view) claimAll(p *Plan, w *Worker) bool {
	var missing []*kueue.Workload
	for _, wl := range v.Workloads {
		switch {
		case wl.Status.ClusterName != nil && *wl.Status.ClusterName == w.Name:
		case wl.Status.ClusterName == nil && slices.Contains(wl.Status.NominatedClusterNames, w.Name):
			missing = append(missing, wl)
		default:
			v.retry(p, reason.ClaimSplit(w.Name), true)
			return false
		}
	}
	for _, wl := range missing {
		p.manager(Claim{Workload: wl, Check: v.Check, Worker: w.Name, Message: reason.Placing(w.Name)})
	}
	return len(missing) == 0
}

// confirm makes the check Ready and mirrors the job's status.
func (v *view) confirm(p *Plan, w *Worker) {
	v.settle(p, kueue.CheckStateReady, reason.Admitted(w.Name), false)
	v.endHold(p, w)
	v.markPods(p, w)
	v.mirrorAll(p, w)
	v.followStart(p, w)
}
