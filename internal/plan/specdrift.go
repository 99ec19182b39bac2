package plan

import (
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

var specDrift = Rule{
	Name: "SpecDrift",
	Doc:  "The manager's Workload changed after its copy won, other than in its priority, or, for an elastic job, in needing less: the check becomes Retry.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable {
			return false
		}
		if !slices.ContainsFunc(w.Workloads, func(c *kueue.Workload) bool { return v.drifted(c, v.original(c.Name)) }) {
			return false
		}
		v.retry(p, reason.CopyChanged(w.Name), false)
		return true
	},
}

func (v *view) drifted(c, wl *kueue.Workload) bool {
	asMarked := c.Annotations[kinds.SpecHashAnnotation] == v.marksFor(wl).specHash
	return !asMarked && !kinds.SameSpec(c, wl) || kinds.Outgrown(c, wl)
}

func equalPtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
