package kinds_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

// TestSameRevision: a rollout on the manager takes no credit for pods of an earlier template on the worker.
func TestSameRevision(t *testing.T) {
	kind := kinds.NewTable([]string{"statefulset"}).ByName("StatefulSet.apps")
	set := func(image string, observed int64) *unstructured.Unstructured {
		s := &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"template": map[string]any{"spec": map[string]any{"image": image}}},
			"status": map[string]any{"updateRevision": "new", "observedGeneration": observed},
		}}
		s.SetGroupVersionKind(kind.GVK)
		s.SetGeneration(2)
		return s
	}
	pod := func(revision string) *unstructured.Unstructured {
		p := &unstructured.Unstructured{Object: map[string]any{}}
		p.SetLabels(map[string]string{"controller-revision-hash": revision})
		return p
	}
	there := func(image string) *unstructured.Unstructured {
		copied := kind.Project(set(image, 2), workload("w"), marks)
		annotations, _, _ := unstructured.NestedStringMap(copied.Object, "spec", "template", "metadata", "annotations")
		p := &unstructured.Unstructured{Object: map[string]any{}}
		p.SetAnnotations(annotations)
		return p
	}
	for name, c := range map[string]struct {
		set, pod, there *unstructured.Unstructured
		want            bool
	}{
		"both of now":                   {set("b", 2), pod("new"), there("b"), true},
		"new here, old there":           {set("b", 2), pod("new"), there("a"), false},
		"old here, old there":           {set("b", 2), pod("old"), there("a"), true},
		"old here, new there":           {set("b", 2), pod("old"), there("b"), true},
		"the edit is not observed yet":  {set("b", 1), pod("new"), there("a"), true},
		"made by Ferry of an older day": {set("b", 2), pod("new"), pod("x"), true},
	} {
		if got := kind.SameRevision(c.set, c.pod, c.there); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
