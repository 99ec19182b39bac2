package webhook_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/webhook"
)

// anyJSON draws JSON values, among whose fields are the ones that the webhook looks at.
func anyJSON(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int32().AsAny(),
		rapid.SampledFrom([]string{"", "x", ours, "kubernetes.io/job-controller"}).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	return rapid.Custom(func(t *rapid.T) any {
		field := rapid.SampledFrom([]string{"spec", "managedBy", "run/~Policy", "a", "b"})
		return rapid.OneOf(append(leaves,
			rapid.MapOfN(field, anyJSON(depth-1), 0, 4).AsAny(),
			rapid.SliceOfN(anyJSON(depth-1), 0, 2).AsAny(),
		)...).Draw(t, "value")
	})
}

// without removes the field at path, and parents that are empty without it.
func without(object map[string]any, path kinds.Path) {
	if len(path) > 1 {
		child, ok := object[path[0]].(map[string]any)
		if object[path[0]] == nil {
			delete(object, path[0])
		}
		if !ok {
			return
		}
		if without(child, path[1:]); len(child) > 0 {
			return
		}
	}
	delete(object, path[0])
}

// TestOnceIsEnoughAndNothingElseMoves: a second call finds nothing to do, and the
// first touched only the field itself.
func TestOnceIsEnoughAndNothingElseMoves(t *testing.T) {
	reader := newReader(t, interceptor.Funcs{})
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		kind := rapid.SampledFrom([]*kinds.Kind{job(), deep()}).Draw(t, "kind")
		object := map[string]any{"kind": "Job"}
		if spec := anyJSON(3).Draw(t, "spec"); rapid.Bool().Draw(t, "has spec") {
			object["spec"] = spec
		}
		queue := rapid.SampledFrom([]string{"dispatched", "second", "foreign", "plain", "absent"}).Draw(t, "queue")
		object["metadata"] = map[string]any{"labels": map[string]any{"kueue.x-k8s.io/queue-name": queue}, "x": anyJSON(2).Draw(t, "x")}
		raw, err := json.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())

		handler := &webhook.ManagedBy{Kind: kind, Reader: reader}
		first := handler.Handle(t.Context(), create(string(raw)))
		g.Expect(first.Allowed).To(BeTrue())
		once := apply(g, string(raw), first)
		second := handler.Handle(t.Context(), create(once))
		g.Expect(second.Allowed).To(BeTrue())
		g.Expect(second.Patches).To(BeEmpty())
		if len(first.Patches) == 0 {
			return
		}
		g.Expect(queue).To(BeElementOf("dispatched", "second"))
		var before, after map[string]any
		g.Expect(json.Unmarshal(raw, &before)).To(Succeed())
		g.Expect(json.Unmarshal([]byte(once), &after)).To(Succeed())
		without(before, kind.ManagedBy)
		without(after, kind.ManagedBy)
		g.Expect(after).To(Equal(before))
	})
}
