package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var outOfSync = Rule{
	Name: "OutOfSync",
	Doc:  "Kueue on the worker that holds the claim ended the copy because its job differs (a webhook there changed it): that is no result. The check becomes Retry, with a warning, and the worker rests for this job.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable || !slices.ContainsFunc(w.Workloads, endedOutOfSync) {
			return false
		}
		v.retryWithRest(p, w, reason.OutOfSync(w.Name), reason.OutOfSyncHere, false)
		return true
	},
}

func endedOutOfSync(c *kueue.Workload) bool {
	f := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadFinished)
	return f != nil && f.Status == metav1.ConditionTrue && f.Reason == kueue.WorkloadFinishedReasonOutOfSync
}
