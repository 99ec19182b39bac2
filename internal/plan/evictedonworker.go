package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var evictedOnWorker = Rule{
	Name: "EvictedOnWorker",
	Doc:  "Kueue on the worker that holds the claim evicted the copy (preempted, its quota cut, pods not ready in time): the check becomes Retry and the job is offered to all workers again; where that repeats, this one rests for the job. Of a job of many Workloads the others run on. A copy that was stopped because the job's maximum execution time is up is not offered again: Kueue on the manager, whose clock started a little later, ends the job.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable {
			return false
		}
		for _, c := range v.quotaOf(w) {
			if isTrue(c, kueue.WorkloadEvicted) {
				if v.timeIsUp(p, w, c) {
					return true
				}
				why := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadEvicted).Message
				message := reason.EvictedOnWorker(w.Name, why)
				if v.many() {
					v.settleOne(p, v.original(c.Name), kueue.CheckStateRetry, message, false)
				} else {
					v.retry(p, message, false)
					v.giveRest(p, w, Rest{Why: reason.EvictedHere(why), Lenient: true})
				}
				return true
			}
		}
		return false
	},
}

// timeIsUp tells whether Kueue on the worker stopped the copy for good as it ran for the job's maximum execution time.
// Clocks are the clusters' own, and the manager's starts when it hears of the admission: offered again meanwhile, the
// job would start once more for that moment.
func (v *view) timeIsUp(p *Plan, w *Worker, c *kueue.Workload) bool {
	evicted := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadEvicted)
	if v.many() || v.Workloads[0].Spec.MaximumExecutionTimeSeconds == nil || !strings.HasSuffix(evicted.Reason, kueue.WorkloadMaximumExecutionTimeExceeded) {
		return false
	}
	v.removeFromAllBut(p, w.Name)
	v.settle(p, kueue.CheckStateReady, reason.Admitted(w.Name), false) // which lets the manager's clock run, if it does not yet
	p.Because = reason.TimeIsUp(w.Name)
	return true
}
