package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// endGroup ends the Workload of a group of which all pods are being deleted. Until then Kueue holds these on the manager
// for others that may join, and a namespace that is being deleted waits for its pods before it deletes a Workload.
func (v *view) endGroup(p *Plan) {
	if v.Kind.Held == "" || v.Check == "" || len(v.Jobs) == 0 {
		return
	}
	at := v.lastDeletion()
	if left := at.Add(v.Policy.WorkerLostTimeout).Sub(v.Now); left > 0 && v.mayBeSomewhere() {
		p.again(left)
		return
	}
	for _, wl := range v.Workloads {
		if wl.DeletionTimestamp.IsZero() && !isTrue(wl, kueue.WorkloadFinished) && !evictedSince(wl, at) {
			p.manager(Finish{Workload: wl, Reason: kueue.WorkloadFinishedReasonOwnerNotFound, Message: reason.GroupDeleted})
		}
	}
}

// lastDeletion is when the last of the job's objects was deleted.
func (v *view) lastDeletion() time.Time {
	var last time.Time
	for _, job := range v.Jobs {
		if at := job.GetDeletionTimestamp(); at != nil && at.After(last) {
			last = at.Time
		}
	}
	return last
}

// mayBeSomewhere tells whether something of the job is on a worker, or may be on the one that it was assigned to.
func (v *view) mayBeSomewhere() bool {
	claim := v.claim()
	for i := range v.Workers {
		w := &v.Workers[i]
		if v.holds(w) || w.Name == claim && (!w.Reachable || w.Blind) {
			return true
		}
	}
	return false
}

// evictedSince tells whether it was Kueue that deleted the pods, as it does with those of a group that it evicts: others
// are to come in their place. It evicts first, deletes then, and looks for quota again after that.
func evictedSince(wl *kueue.Workload, deletion time.Time) bool {
	evicted := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	return evicted != nil && (isTrue(wl, kueue.WorkloadEvicted) || !deletion.After(evicted.LastTransitionTime.Time))
}
