package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"

	"ferry.dev/ferry/test/fixtures"
)

// foreignJob makes a Job on a worker that is none of Ferry's; it is suspended, so that nothing there changes it.
func (s *site) foreignJob(worker, name string) *batchv1.Job {
	s.t.Helper()
	job := fixtures.Job(s.namespace, name, fixtures.InQueue(""), fixtures.Suspended())
	s.Expect(on(worker).Create(s.ctx, job)).To(Succeed())
	s.Eventually(func(g Gomega) {
		job = s.job(g, worker, name)
		g.Expect(job.Status.Conditions).NotTo(BeEmpty(), "the Job controller has seen it")
	}).Should(Succeed())
	return job
}

func TestForeignJobMakesAWorkerIneligible(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("1"))
	theirs := s.foreignJob("w1", "train")
	s.submit("train", fixtures.CPU("2"), fixtures.RunsFor(time.Second))
	s.awaitMessage("train", "w2", "w1: holds a Job of this name that Ferry did not create")
	s.setCPU("w1", "4")
	s.setCPU("w2", "4")
	s.awaitComplete("train")
	s.Expect(s.creations(s, "train")).To(Equal(map[string]int{"w2": 1}))
	s.awaitNothingOn("w2")
	s.expectUntouched("w1", theirs)
}

func (s *site) expectUntouched(worker string, job *batchv1.Job) {
	s.t.Helper()
	now := s.job(s, worker, job.Name)
	s.Expect(now).NotTo(BeNil())
	s.Expect(now.UID).To(Equal(job.UID))
	s.Expect(now.ResourceVersion).To(Equal(job.ResourceVersion))
}

func TestForeignJobsEverywhereAndOneGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stays, goes := s.foreignJob("w1", "train"), s.foreignJob("w2", "train")
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitMessage("train", "No worker can take the job",
		"w1: holds a Job of this name that Ferry did not create", "w2: holds a Job of this name that Ferry did not create")
	s.Expect(on("w2").Delete(s.ctx, goes, background)).To(Succeed())
	s.awaitComplete("train")
	s.Expect(s.creations(s, "train")).To(Equal(map[string]int{"w2": 1}))
	s.expectUntouched("w1", stays)
}
