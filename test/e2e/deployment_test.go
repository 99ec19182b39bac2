package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/fixtures"
)

// theWorkerOf waits until n pods of these names run, all on one worker, and names it.
func (s *site) theWorkerOf(prefix string, n int) (worker string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, worker = range s.workers {
			if len(s.podsNamed(g, worker, prefix)) > 0 {
				break
			}
		}
		s.expectPodsMirrored(g, worker, prefix, n)
	}).Should(Succeed(), "%d pods %s should run on one worker", n, prefix)
	return worker
}

var deploymentIsReady = []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"}

func TestDeployment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	deployment := s.create("manager", s.sample("deployment"))
	name := deployment.GetName()
	worker := s.theWorkerOf(name, 3)
	s.awaitReady(deployment, worker, 3, deploymentIsReady...)
	before := s.uids(s, worker, name)

	s.setReplicas(deployment, 5)
	s.awaitReady(deployment, worker, 5, deploymentIsReady...)
	s.expectRunOn(before, worker, name)
	s.setReplicas(deployment, 2)
	s.awaitReady(deployment, worker, 2, deploymentIsReady...)

	s.crash(worker, s.podsNamed(s, worker, name)[0].Name)
	s.awaitCounts(deployment, 1, "readyReplicas", "availableReplicas")
	s.heal(worker, s.podsNamed(s, worker, name)[0].Name)
	s.awaitCounts(deployment, 2, deploymentIsReady...)
	s.loseOnePod(deployment, worker)
	s.awaitReady(deployment, worker, 2, deploymentIsReady...)

	s.setImage(deployment, "nginx:1.30", "spec", "template")
	s.awaitImage(deployment, worker, "nginx:1.30")
	s.awaitReady(deployment, worker, 2, deploymentIsReady...)
	s.awaitGone(deployment)
}

// loseOnePod deletes a pod on the worker: on the manager it failed, as one whose node went away, and the Deployment
// there makes another.
func (s *site) loseOnePod(deployment *unstructured.Unstructured, worker string) {
	s.t.Helper()
	lost := s.podsNamed(s, worker, deployment.GetName())[0]
	s.Expect(on(worker).Delete(s.ctx, lost.DeepCopy())).To(Succeed())
	s.Eventually(func(g Gomega) {
		g.Expect(s.pod(g, "manager", lost.Name)).To(HaveField("Status.Phase", corev1.PodFailed))
		g.Expect(s.pod(g, worker, lost.Name)).To(BeNil(), "on %s", worker)
	}).Should(Succeed(), "%s should be shown as failed", lost.Name)
	s.Expect(manager().Delete(s.ctx, s.named(podGVK, lost.Name))).To(Succeed())
}

// TestDeploymentLeavesAFullWorker: pods of one Deployment stay together as long as they fit.
func TestDeploymentLeavesAFullWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("400m")) // room for two pods
	s.leavePods()
	deployment := s.create("manager", s.sample("deployment"))
	s.Eventually(func(g Gomega) {
		w1, w2 := len(s.podsNamed(g, "w1", deployment.GetName())), len(s.podsNamed(g, "w2", deployment.GetName()))
		g.Expect([]int{w1, w2}).To(ConsistOf(1, 2), "pods on w1 and w2")
	}).Should(Succeed(), "two pods fit on one worker, the third goes elsewhere")
	s.awaitCounts(deployment, 3, deploymentIsReady...)
	s.awaitGone(deployment)
}

// TestDeploymentSpreads: with the annotation each pod goes its own way; nothing says whose it is.
func TestDeploymentSpreads(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("400m"))
	s.leavePods()
	deployment := s.sample("deployment")
	deployment.SetAnnotations(map[string]string{kinds.SpreadAnnotation: "true"})
	s.Expect(unstructured.SetNestedField(deployment.Object, int64(4), "spec", "replicas")).To(Succeed())
	deployment = s.create("manager", deployment)
	s.awaitCounts(deployment, 4, deploymentIsReady...)
	for _, w := range s.workers {
		s.Expect(s.podsNamed(s, w, deployment.GetName())).To(HaveLen(2), "pods on %s", w)
	}
	for _, p := range s.podsNamed(s, "manager", deployment.GetName()) {
		s.Expect(p.Annotations).NotTo(HaveKey(kinds.FamilyAnnotation), p.Name)
	}
	s.awaitGone(deployment)
}
