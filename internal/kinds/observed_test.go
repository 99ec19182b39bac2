package kinds_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

// TestObservedGeneration: kubectl wait takes a condition for outdated that was observed at an earlier generation than
// the object's own, and asks the condition before the status.
func TestObservedGeneration(t *testing.T) {
	seen := func(status, ready any) map[string]any {
		condition := map[string]any{"type": "Ready", "status": "True"}
		all := map[string]any{"conditions": []any{condition}}
		if status != nil {
			all["observedGeneration"] = status
		}
		if ready != nil {
			condition["observedGeneration"] = ready
		}
		return all
	}
	const there, here = int64(2), int64(5)
	for name, c := range map[string]struct{ was, worker, want map[string]any }{
		"the newest is the newest here too":       {seen(nil, nil), seen(there, there), seen(here, here)},
		"an edit here does not make it outdated":  {seen(int64(4), int64(4)), seen(there, there), seen(here, here)},
		"one that is behind there is behind here": {seen(int64(3), int64(3)), seen(there-1, there-1), seen(int64(3), int64(3))},
		"nobody knows how far behind":             {seen(nil, nil), seen(there-1, there-1), seen(nil, nil)},
		"the condition alone":                     {seen(int64(3), int64(3)), seen(there, there-1), seen(here, int64(3))},
		"it was not said":                         {seen(nil, nil), seen(nil, nil), seen(nil, nil)},
		"a new condition":                         {map[string]any{}, seen(there, there), seen(here, here)},
	} {
		for _, kind := range []string{"RayService.ray.io", "PipelineRun.tekton.dev", "Pod"} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				row := kinds.NewTable(kinds.Frameworks(), customExamples...).ByName(kind)
				object := func(generation int64, status map[string]any) *unstructured.Unstructured {
					o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
					o.SetGroupVersionKind(row.GVK)
					o.SetGeneration(generation)
					return o
				}
				NewWithT(t).Expect(row.Reflect(object(here, c.was), object(there, c.worker), now)).To(Equal(c.want))
			})
		}
	}
}
