package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

type jobType = batchv1.Job

func onManager(cluster string) bool { return cluster == "manager" }
func onWorker(cluster string) bool  { return cluster != "manager" }

func TestPreemptionOnTheManagerStopsTheCopy(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.ManagerCPU("2"), fixtures.WorkerCPU("100"), fixtures.Preempting(onManager))
	low, high := s.priorityClass("low", 1, "manager"), s.priorityClass("high", 100, "manager")
	s.submit("low", fixtures.CPU("2"), fixtures.Priority(low), fixtures.RunsOn())
	_, first := s.awaitRunning("low")
	winner := s.submit("high", fixtures.CPU("2"), fixtures.Priority(high), fixtures.RunsOn())
	worker, _ := s.awaitRunning("high")
	for _, w := range s.workers {
		s.Expect(s.job(s, w, "low")).To(BeNil(), "the preempted job runs no more, as %q has its quota", worker)
	}
	s.Expect(manager().Delete(s.ctx, winner, background)).To(Succeed())
	_, second := s.awaitRunning("low")
	s.Expect(second).NotTo(Equal(first))
}

func TestDeactivatedJobStopsAndResumes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.RunsOn())
	s.awaitRunning("train")
	s.setActive("train", false)
	s.awaitNothingOn(s.workers...)
	s.awaitNoQuota("train")
	s.Eventually(func(g Gomega) {
		job := s.job(g, "manager", "train")
		g.Expect(suspended(job)).To(BeTrue())
		g.Expect(job.Status.Active).To(BeZero())
	}).Should(Succeed())
	s.setActive("train", true)
	s.awaitRunning("train")
}

func (s *site) setActive(job string, active bool) {
	s.t.Helper()
	update(s, "manager", s.workload(s, job), func(wl *kueue.Workload) { wl.Spec.Active = &active })
}

func TestDeletedJobLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.submit("train", fixtures.RunsOn())
	s.awaitRunning("train")
	s.Expect(manager().Delete(s.ctx, job, background)).To(Succeed())
	s.awaitNothingOn(s.workers...)
	s.Eventually(func(g Gomega) {
		g.Expect(s.job(g, "manager", "train")).To(BeNil())
		g.Expect(s.workloads(g, "manager")).To(BeEmpty())
	}).Should(Succeed())
}

func TestDrainedQueueOnTheManagerStopsTheCopyAndReleasesQuota(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.RunsOn())
	_, first := s.awaitRunning("train")
	s.setStopPolicy("manager", kueue.HoldAndDrain)
	s.awaitNothingOn(s.workers...)
	s.awaitNoQuota("train")
	s.setStopPolicy("manager", kueue.None)
	_, second := s.awaitRunning("train")
	s.Expect(second).NotTo(Equal(first))
}

func TestDrainedQueueOnAWorkerMovesTheJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	s.setStopPolicy(worker, kueue.HoldAndDrain)
	s.awaitEvent(s.namespace, "MultiKueue", `Workload evicted on worker cluster: "`+worker+`"`)
	s.awaitRunningOn(other(worker), "train")
	s.awaitNothingOn(worker)
}

func TestPreemptionOnAWorkerMovesTheJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("2"), fixtures.Preempting(onWorker))
	s.submit("train", fixtures.CPU("2"), fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	high := s.priorityClass("high", 100, worker)
	theirs := fixtures.Job(s.namespace, "theirs", fixtures.CPU("2"), fixtures.Priority(high), fixtures.RunsOn())
	s.Expect(on(worker).Create(s.ctx, theirs)).To(Succeed())
	s.awaitRunningOn(other(worker), "train")
	s.Eventually(func(g Gomega) {
		g.Expect(s.job(g, worker, "theirs").Status.Active).To(BeEquivalentTo(1), "the worker's own job runs")
	}).Should(Succeed())
}
