package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var gone = Rule{
	Name: "Gone",
	Doc:  "The job is deleted on the manager: every worker removes what it has of it. The Workload of a pod group ends then, unless Kueue evicted it: Kueue would hold the group's pods for as long as others may join, and a namespace that is being deleted would wait for them. A worker on which something of it stays, or that is out of reach, is waited for no longer than workerLostTimeout.",
	decide: func(v *view, p *Plan) bool {
		if v.Kind == nil || slices.ContainsFunc(v.Jobs, isThere) {
			return false
		}
		p.Because = "The job is gone from the manager"
		v.removeFromAllBut(p)
		v.endGroup(p)
		return true
	},
}

func isThere(job *unstructured.Unstructured) bool { return job.GetDeletionTimestamp().IsZero() }
