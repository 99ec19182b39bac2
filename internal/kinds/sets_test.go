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

// TestSameGroupRevision: the same for the pods of a LeaderWorkerSet, whose labels do not tell which revision is the newest.
func TestSameGroupRevision(t *testing.T) {
	kind := kinds.NewTable([]string{"leaderworkerset.x-k8s.io/leaderworkerset"}).Rows()[0]
	set := func(leader, worker string, partition int64) *unstructured.Unstructured {
		template := func(image string) map[string]any { return map[string]any{"spec": map[string]any{"image": image}} }
		templates := map[string]any{"workerTemplate": template(worker)}
		if leader != "" {
			templates["leaderTemplate"] = template(leader)
		}
		s := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"leaderWorkerTemplate": templates,
			"rolloutStrategy":      map[string]any{"rollingUpdateConfiguration": map[string]any{"partition": partition}},
		}}}
		s.SetGroupVersionKind(kind.GVK)
		return s
	}
	pod := func(member, phase string) *unstructured.Unstructured {
		p := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
		p.SetLabels(map[string]string{"leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": member})
		return p
	}
	there := func(set *unstructured.Unstructured, template string) *unstructured.Unstructured {
		copied := kind.Project(set, workload("w"), marks)
		annotations, _, _ := unstructured.NestedStringMap(copied.Object, "spec", "leaderWorkerTemplate", template, "metadata", "annotations")
		p := &unstructured.Unstructured{Object: map[string]any{}}
		p.SetAnnotations(annotations)
		return p
	}
	now, before := set("b", "c", 0), set("a", "a", 0)
	alike, alikeBefore := set("", "c", 0), set("", "a", 0)
	for name, c := range map[string]struct {
		set, pod, there *unstructured.Unstructured
		want            bool
	}{
		"leader of now":                   {now, pod("0", "Pending"), there(now, "leaderTemplate"), true},
		"worker of now":                   {now, pod("1", "Pending"), there(now, "workerTemplate"), true},
		"new leader here, old there":      {now, pod("0", "Pending"), there(before, "leaderTemplate"), false},
		"new worker here, old there":      {now, pod("1", "Pending"), there(before, "workerTemplate"), false},
		"one that runs shows what it did": {now, pod("0", "Running"), there(before, "leaderTemplate"), true},
		"below the partition":             {set("b", "c", 2), pod("0", "Pending"), there(before, "leaderTemplate"), true},
		"at the partition":                {set("b", "c", 1), pod("0", "Pending"), there(before, "leaderTemplate"), false},
		"one template for all":            {alike, pod("0", "Pending"), there(alike, "workerTemplate"), true},
		"one template for all, and old":   {alike, pod("0", "Pending"), there(alikeBefore, "workerTemplate"), false},
		"scaled only":                     {set("b", "c", 0), pod("0", "Pending"), there(now, "leaderTemplate"), true},
		"made by Ferry of an older day":   {now, pod("0", "Pending"), pod("0", "Running"), true},
	} {
		if got := kind.SameRevision(c.set, c.pod, c.there); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
