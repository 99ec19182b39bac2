package plan

import (
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var outOfSync = Rule{
	Name: "OutOfSync",
	Doc:  "Kueue on the worker that holds the claim ended the copy because its job differs (a webhook there changed it): that is no result. The check becomes Retry, with a warning, and the worker rests for this job.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable || w.Blind || v.Kind == nil ||
			!slices.ContainsFunc(w.Workloads, func(c *kueue.Workload) bool { return v.endOf(w, c) == isOutOfSync }) {
			return false
		}
		v.retryWithRest(p, w, reason.OutOfSync(w.Name), Rest{Why: reason.OutOfSyncHere, OfKind: true})
		return true
	},
}
