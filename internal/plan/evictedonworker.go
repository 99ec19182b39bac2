package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var evictedOnWorker = Rule{
	Name: "EvictedOnWorker",
	Doc:  "Kueue on the worker that holds the claim evicted the copy (preempted, its quota cut, pods not ready in time): the check becomes Retry and the job is offered to all workers again; where that repeats, this one rests for the job. Of a job of many Workloads the others run on.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable {
			return false
		}
		for _, c := range v.quotaOf(w) {
			if isTrue(c, kueue.WorkloadEvicted) {
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
