package e2e_test

import (
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
)

func quantityOf(s string) resource.Quantity { return resource.MustParse(s) }

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func ended(job *batchv1.Job, how batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == how {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// awaitRunning waits until a worker runs the Job and the manager shows it, and returns the worker's name and the UID of the copy.
func (s *site) awaitRunning(job string) (worker string, uid types.UID) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		wl := s.workload(g, job)
		g.Expect(wl.Status.ClusterName).NotTo(BeNil(), "clusterName")
		worker = *wl.Status.ClusterName
		g.Expect(s.check(g, job).State).To(Equal(kueue.CheckStateReady))
		copied := s.job(g, worker, job)
		g.Expect(copied).NotTo(BeNil(), "the copy on %s", worker)
		g.Expect(copied.Status.Active).To(BeNumerically(">", 0), "active on %s", worker)
		uid = copied.UID
		original := s.job(g, "manager", job)
		g.Expect(original).NotTo(BeNil(), "the Job on the manager")
		g.Expect(original.Status.Active).To(Equal(copied.Status.Active), "active on the manager")
	}).Should(Succeed(), "%s should run", job)
	return worker, uid
}

// awaitRunningOn is awaitRunning on a given worker.
func (s *site) awaitRunningOn(worker, job string) types.UID {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		name := s.workload(g, job).Status.ClusterName
		g.Expect(name).To(HaveValue(Equal(worker)), "clusterName")
	}).Should(Succeed(), "%s should go to %s", job, worker)
	runs, uid := s.awaitRunning(job)
	s.Expect(runs).To(Equal(worker))
	return uid
}

// awaitComplete waits until the manager shows the Job complete and its Workload finished.
func (s *site) awaitComplete(job string) *batchv1.Job {
	s.t.Helper()
	var original *batchv1.Job
	s.Eventually(func(g Gomega) {
		original = s.job(g, "manager", job)
		g.Expect(original).NotTo(BeNil(), "the Job on the manager")
		g.Expect(ended(original, batchv1.JobComplete)).To(BeTrue(), "condition Complete in %v", original.Status)
		finished := meta.FindStatusCondition(s.workload(g, job).Status.Conditions, kueue.WorkloadFinished)
		g.Expect(finished).To(HaveValue(HaveField("Reason", kueue.WorkloadFinishedReasonSucceeded)))
	}).Should(Succeed(), "%s should complete", job)
	return original
}

// awaitNothingOn waits until a worker has neither a Job nor a Workload of these names' site but those to keep.
func (s *site) awaitNothingOn(workers ...string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, w := range workers {
			g.Expect(s.copies(g, w)).To(BeEmpty(), "copies on %s", w)
		}
	}).Should(Succeed())
}

// copies names all that Ferry has made on a worker for this site.
func (s *site) copies(g Gomega, worker string) []string {
	var names []string
	ours := client.HasLabels{kueue.MultiKueueOriginLabel}
	var jobs batchv1.JobList
	g.Expect(on(worker).List(s.ctx, &jobs, client.InNamespace(s.namespace), ours)).To(Succeed())
	for _, j := range jobs.Items {
		names = append(names, "Job "+j.Name)
	}
	var wls kueue.WorkloadList
	g.Expect(on(worker).List(s.ctx, &wls, client.InNamespace(s.namespace), ours)).To(Succeed())
	for _, wl := range wls.Items {
		names = append(names, "Workload "+wl.Name)
	}
	return names
}

// awaitMessage waits for our check's message on a Job.
func (s *site) awaitMessage(job string, parts ...string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		message := s.check(g, job).Message
		for _, part := range parts {
			g.Expect(message).To(ContainSubstring(part))
		}
	}).Should(Succeed(), "the check's message of %s", job)
}

// awaitEvent waits for an event in this site with a reason and a part of its message.
func (s *site) awaitEvent(namespace, reason, message string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		var events corev1.EventList
		g.Expect(manager().List(s.ctx, &events, client.InNamespace(namespace))).To(Succeed())
		var seen []string
		for _, e := range events.Items {
			seen = append(seen, e.Reason+": "+e.Message)
		}
		g.Expect(seen).To(ContainElement(And(HavePrefix(reason+": "), ContainSubstring(message))))
	}).Should(Succeed())
}

// awaitRejoined waits until a Job gave up its quota on the manager.
func (s *site) awaitNoQuota(job string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(meta.IsStatusConditionTrue(s.workload(g, job).Status.Conditions, kueue.WorkloadQuotaReserved)).To(BeFalse(), "QuotaReserved")
	}).Should(Succeed())
}

// creations counts by worker how often Ferry made a Job of this name there.
func (s *site) creations(g Gomega, job string) map[string]int {
	return s.creates(g, job, http.StatusCreated)
}

// creates counts by worker Ferry's requests to create a Job of this name that were answered so.
func (s *site) creates(g Gomega, job string, code int) map[string]int {
	made := map[string]int{}
	for _, w := range s.workers {
		counts, err := audit.CountRequests(fleet.Worker(w).AuditLog(), time.Time{}, func(r audit.Request) bool {
			return r.User == playground.UserFerry && r.Verb == "create" && r.Resource == "jobs" && r.Code == code &&
				r.Namespace == s.namespace && r.Name == job
		})
		g.Expect(err).NotTo(HaveOccurred())
		if n := counts.Total(); n > 0 {
			made[w] = n
		}
	}
	return made
}

// expectCreatedOnce: over all workers there was one Job of each of these names, ever. A request whose client was
// killed is answered with a timeout, and may have made the Job or not.
func (s *site) expectCreatedOnce(jobs ...string) {
	s.t.Helper()
	for _, job := range jobs {
		made, unclear := s.creations(s, job), s.creates(s, job, http.StatusGatewayTimeout)
		s.Expect(sum(made)).To(BeNumerically("<=", 1), "Jobs %s made on workers: %v", job, made)
		s.Expect(sum(made)+sum(unclear)).To(BeNumerically(">=", 1), "no Job %s was made on any worker", job)
	}
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

func numbered(prefix string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i+1))
	}
	return names
}
