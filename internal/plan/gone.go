package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var gone = Rule{
	Name: "Gone",
	Doc:  "The job is deleted on the manager: every worker removes what it has of it.",
	decide: func(v *view, p *Plan) bool {
		if v.Kind == nil || slices.ContainsFunc(v.Jobs, isThere) {
			return false
		}
		p.Because = "The job is gone from the manager"
		v.removeFromAllBut(p)
		return true
	},
}

func isThere(job *unstructured.Unstructured) bool { return job.GetDeletionTimestamp().IsZero() }
