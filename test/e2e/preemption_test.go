package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// TestOrchestratedPreemption: all workers are full of jobs of a low priority; one of a high priority preempts on one of them.
func TestOrchestratedPreemption(t *testing.T) {
	s := alone(t, fixtures.WorkerCPU("2"), fixtures.Preempting(onWorker))
	s.reconfigure("  orchestratedPreemption: {enabled: true}\n")
	low, high := s.priorityClass("low", 1, s.workers...), s.priorityClass("high", 1000, "manager")
	for _, w := range s.workers {
		s.Expect(on(w).Create(s.ctx, fixtures.Job(s.namespace, "theirs", fixtures.CPU("2"), fixtures.Priority(low), fixtures.RunsOn()))).To(Succeed())
		s.Eventually(func(g Gomega) { g.Expect(s.job(g, w, "theirs").Status.Active).To(BeEquivalentTo(1)) }).Should(Succeed(), "%s is full", w)
	}
	s.submit("urgent", fixtures.CPU("2"), fixtures.Priority(high), fixtures.RunsOn())
	worker, _ := s.awaitRunning("urgent")
	s.Consistently(func(g Gomega) {
		g.Expect(s.job(g, other(worker), "theirs").Status.Active).To(BeEquivalentTo(1))
		for _, wl := range s.workloads(g, other(worker)) {
			g.Expect(meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)).To(BeNil(), wl.Name)
		}
	}).Should(Succeed(), "nothing was preempted on %s", other(worker))
	s.Eventually(func(g Gomega) { g.Expect(suspended(s.job(g, worker, "theirs"))).To(BeTrue()) }).Should(Succeed(), "preempted on %s", worker)
}
