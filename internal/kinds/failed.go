package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Failed tells of a job that has ended whether it failed: by a condition Failed, or by the word for its state.
func Failed(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	if slices.ContainsFunc(conditions, isFailed) {
		return true
	}
	for _, field := range []string{"phase", "jobStatus", "terminalState"} {
		if state, _, _ := unstructured.NestedString(job.Object, "status", field); strings.EqualFold(state, "Failed") {
			return true
		}
	}
	return false
}

func isFailed(condition any) bool {
	c, _ := condition.(map[string]any)
	return c["type"] == "Failed" && c["status"] == "True"
}
