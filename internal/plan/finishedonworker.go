package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// kueueFinishes is how long Kueue on the manager gets to finish the Workload
// itself, which it does once it sees the job's final status. Writing at the same
// moment would only make one of the two writes fail.
const kueueFinishes = 3 * time.Second

var finishedOnWorker = Rule{
	Name: "FinishedOnWorker",
	Doc:  "The copy is finished on the worker that holds the claim: its status comes back first. Then the manager's Workload ends; normally Kueue there does that on seeing the job's final status, else Ferry.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable || w.Job == nil || len(v.copies(w)) == 0 {
			return false
		}
		for _, c := range v.copies(w) {
			if !isTrue(c, kueue.WorkloadFinished) {
				return false
			}
		}
		p.Because = fmt.Sprintf("The job finished on worker %q", w.Name)
		v.removeFromAllBut(p, w.Name)
		if !v.mirror(p, w.Job) {
			v.finishWorkloads(p, w)
		}
		return true
	},
}

func (v *view) finishWorkloads(p *Plan, w *Worker) {
	for _, c := range v.copies(w) {
		wl := v.original(c.Name)
		if isTrue(wl, kueue.WorkloadFinished) {
			continue
		}
		f := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadFinished)
		if resultFollows(f.Reason) && !v.Kind.Ended(w.Job) {
			// Workloads and jobs come by separate watches, and this one is ahead.
			continue
		}
		if left := f.LastTransitionTime.Add(kueueFinishes).Sub(v.Now); left > 0 {
			p.again(min(left, kueueFinishes))
			continue
		}
		p.manager(Finish{Workload: wl, Reason: f.Reason, Message: f.Message})
	}
}

// resultFollows: Kueue finishes a Workload for these reasons when its job ended.
func resultFollows(reason string) bool {
	return reason == kueue.WorkloadFinishedReasonSucceeded || reason == kueue.WorkloadFinishedReasonFailed
}
