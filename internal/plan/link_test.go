package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestLink: where Kueue refuses the prebuilt-workload link, the Workload's copy gets the job as owner, and only then the
// job gets its queue. Nothing is Ready or mirrored before.
func TestLink(t *testing.T) {
	jax := kinds.NewTable([]string{"kubeflow.org/jaxjob"}).Rows()[0]
	jaxJob := func(s *plan.Snapshot) {
		s.Kind, s.Ref.Kind = jax, jax.Name()
		s.Jobs[0].SetGroupVersionKind(jax.GVK)
		s.Jobs[0].SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "team"})
		s.Jobs[0].Object["spec"] = map[string]any{"runPolicy": map[string]any{"managedBy": kueue.MultiKueueControllerName}}
	}
	placed := on("w1", func(s *plan.Snapshot, w *plan.Worker) {
		w.Jobs = []*unstructured.Unstructured{jax.Project(s.Jobs[0], s.Workloads[0], kinds.Marks{Origin: "m", Reservation: plan.Reservation(s.Workloads[0])})}
		w.Jobs[0].SetUID("w1-job")
	})
	owned := copies("w1", func(c *kueue.Workload) {
		owner := &unstructured.Unstructured{}
		owner.SetUID("w1-job")
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, jax.GVK)}
	})
	queued := on("w1", func(s *plan.Snapshot, w *plan.Worker) { w.Jobs[0] = kinds.Queued(s.Jobs[0], w.Jobs[0]) })
	start := all(jaxJob, claim("w1"), nominated("w1"), offered("w1"), admitted("w1", 0), placed)
	for _, c := range []struct {
		name, want string
		when       plan.Snapshot
	}{
		{"owner first", "Claimed | w1: give wl its owner train | again in 50s", snap(start)},
		{"then the queue", "Claimed | w1: edit JAXJob train | again in 50s", snap(start, owned)},
		{"an owner that is gone", "Claimed | w1: give wl its owner train | again in 50s", snap(start, owned, on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Jobs[0].SetUID("another") }))},
		{"linked", "Claimed | manager: set check of wl to Ready", snap(start, owned, queued)},
	} {
		if got := show(plan.Decide(c.when)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
