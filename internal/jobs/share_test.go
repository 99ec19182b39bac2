package jobs

import (
	"fmt"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// TestShared: jobs share what is equal in them, and no job is another one for that.
func TestShared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		s := &shared{}
		for range rapid.IntRange(1, 6).Draw(t, "jobs") {
			job := &unstructured.Unstructured{Object: anyMap(t, 0)}
			job.SetName(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"))
			before := job.DeepCopy()
			s.job(job)
			g.Expect(job.Object).To(Equal(before.Object))
		}
	})
}

func TestSharedIsOne(t *testing.T) {
	g := NewWithT(t)
	s := &shared{}
	made := func(name, seed string) map[string]any {
		job := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]any{"team": "a"}},
			"spec": map[string]any{"replicas": int64(2), "containers": []any{map[string]any{
				"args": []any{seed}, "resources": map[string]any{"limits": map[string]any{"cpu": "4", "none": nil}}, "env": []any{map[string]any{"name": "A", "value": "1"}},
			}}},
		}}
		s.job(job)
		return job.Object
	}
	a, b, c := made("a", "1"), made("b", "1"), made("c", "2")
	at := func(job map[string]any, path ...string) uintptr {
		part, _, err := unstructured.NestedFieldNoCopy(job, path...)
		g.Expect(err).NotTo(HaveOccurred())
		return reflect.ValueOf(part).Pointer()
	}
	g.Expect(at(a, "spec")).To(Equal(at(b, "spec")))
	g.Expect(at(a, "metadata", "labels")).To(Equal(at(c, "metadata", "labels")))
	g.Expect(at(a, "spec")).NotTo(Equal(at(c, "spec")))
	first := func(job map[string]any) map[string]any {
		return job["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	}
	for _, part := range []string{"resources", "env"} {
		g.Expect(at(first(a), part)).To(Equal(at(first(c), part)), part)
	}
	g.Expect(at(a, "metadata")).NotTo(Equal(at(b, "metadata")))
}

// TestSharedIsBounded: what jobs that are gone had is not kept for ever.
func TestSharedIsBounded(t *testing.T) {
	s := &shared{}
	for i := range 2 * mostShared {
		s.job(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"arg": fmt.Sprint(i)}}})
	}
	if len(s.parts) > mostShared {
		t.Errorf("%d parts are kept", len(s.parts))
	}
}

func anyMap(t *rapid.T, depth int) map[string]any {
	of := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		of[rapid.SampledFrom([]string{"a", "b", "c", "metadata"}).Draw(t, "field")] = anyPart(t, depth)
	}
	if depth == 0 {
		delete(of, "metadata")
	}
	return of
}

func anyPart(t *rapid.T, depth int) any {
	most := 6
	if depth > 2 {
		most = 4
	}
	switch rapid.IntRange(0, most).Draw(t, "what") {
	case 0:
		return nil
	case 1:
		return int64(rapid.IntRange(0, 2).Draw(t, "number"))
	case 2:
		return rapid.Bool().Draw(t, "truth")
	case 3:
		return 0.5
	case 4:
		return rapid.SampledFrom([]string{"", "a", "b", "true", "1"}).Draw(t, "text")
	case 5:
		return anyMap(t, depth+1)
	default:
		list := make([]any, rapid.IntRange(0, 2).Draw(t, "items"))
		for i := range list {
			list[i] = anyPart(t, depth+1)
		}
		return list
	}
}
