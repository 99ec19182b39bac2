package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// TestAppWrapperAroundOtherKinds: what is wrapped goes along, whatever its kind.
func TestAppWrapperAroundOtherKinds(t *testing.T) {
	startOperator(t, "training-operator")
	startOperator(t, "appwrapper")
	t.Run("PyTorchJob", func(t *testing.T) {
		s := newSite(t)
		job := s.wrap(s.sample("pytorchjob"))
		s.leaveKind(job)
		s.create("manager", job)
		worker := s.awaitMirrored(job)
		s.Expect(s.read(s, other(worker), job)).To(BeNil(), "on the other worker")
		s.awaitOver(job, kueue.WorkloadFinishedReasonSucceeded)
		s.awaitNothingLeft(job)
		s.expectNoPodEver()
	})
	t.Run("Deployment", func(t *testing.T) {
		s := newSite(t)
		job := s.wrap(s.sample("deployment"))
		s.leaveKind(job)
		made := s.create("manager", job)
		s.awaitMirrored(job)
		s.Eventually(func(g Gomega) {
			g.Expect(statusOf(s.read(g, "manager", job))).To(HaveKeyWithValue("phase", "Running"))
		}).Should(Succeed())
		s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
		s.awaitNothingLeft(job)
		s.expectNoPodEver()
	})
}

// wrap puts an object into an AppWrapper of this site's queue.
func (s *site) wrap(inner *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	inner = inner.DeepCopy()
	inner.SetLabels(nil)
	inner.SetNamespace("")
	wrapper := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper",
		"spec": map[string]any{"components": []any{map[string]any{"template": inner.Object}}},
	}}
	wrapper.SetNamespace(s.namespace)
	wrapper.SetName("around-" + inner.GetName())
	wrapper.SetLabels(map[string]string{fixtures.QueueLabel: fixtures.Queue})
	return wrapper
}
