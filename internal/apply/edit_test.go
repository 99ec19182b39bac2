package apply_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

// TestEditsTakeNothingBack: Kueue on the worker writes flavors into the copy when it starts it. A patch replaces lists
// whole, so an edit that was decided on an older version would take them out again.
func TestEditsTakeNothingBack(t *testing.T) {
	g := NewWithT(t)
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"namespace": "team-a", "name": "train"},
		"spec": map[string]any{"workerGroupSpecs": []any{map[string]any{"groupName": "small", "replicas": int64(4)}}},
	}}
	worker := fake.NewClientBuilder().WithObjects(cluster).Build()
	seen := read(g, t, worker, cluster)

	started := seen.DeepCopy()
	group(started)["nodeSelector"] = "spot"
	g.Expect(worker.Update(t.Context(), started)).To(Succeed())

	applier := &apply.Applier{Memory: observe.NewMemory(), Clock: testclock.NewFakePassiveClock(time.Unix(0, 0))}
	ref := kinds.Ref{Kind: "RayCluster.ray.io", Namespace: "team-a", Name: "train"}
	shrink := func() error {
		want := seen.DeepCopy()
		group(want)["replicas"] = int64(2)
		return applier.OnWorker(t.Context(), "w1", worker, ref, plan.EditJob{Copy: seen, Want: want})
	}
	g.Expect(apierrors.IsConflict(shrink())).To(BeTrue(), "an older version")
	g.Expect(group(read(g, t, worker, cluster))).To(HaveKeyWithValue("nodeSelector", "spot"))

	seen = read(g, t, worker, cluster)
	g.Expect(shrink()).To(Succeed())
	g.Expect(group(read(g, t, worker, cluster))).To(And(HaveKeyWithValue("nodeSelector", "spot"), HaveKeyWithValue("replicas", int64(2))))
}

func read(g Gomega, t *testing.T, from client.Client, like *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(like.GroupVersionKind())
	g.Expect(from.Get(t.Context(), client.ObjectKeyFromObject(like), obj)).To(Succeed())
	return obj
}

func group(cluster *unstructured.Unstructured) map[string]any {
	return cluster.Object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
}
