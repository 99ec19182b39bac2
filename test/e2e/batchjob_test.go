package e2e_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

func TestManagedByIsSetForOurQueuesOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addQueueWithoutCheck("plain")
	for name, c := range map[string]struct {
		options []fixtures.JobOption
		want    OmegaMatcher
	}{
		"ours":          {want: HaveValue(Equal(kueue.MultiKueueControllerName))},
		"builtin":       {options: []fixtures.JobOption{fixtures.ManagedBy(batchv1.JobControllerName)}, want: HaveValue(Equal(kueue.MultiKueueControllerName))},
		"without-queue": {options: []fixtures.JobOption{fixtures.InQueue(""), fixtures.Suspended()}, want: BeNil()},
		"plain-queue":   {options: []fixtures.JobOption{fixtures.InQueue("plain"), fixtures.Suspended()}, want: BeNil()},
		"no-such-queue": {options: []fixtures.JobOption{fixtures.InQueue("nowhere")}, want: BeNil()},
		"another":       {options: []fixtures.JobOption{fixtures.ManagedBy("example.com/mine")}, want: HaveValue(Equal("example.com/mine"))},
	} {
		job := fixtures.Job(s.namespace, name, c.options...)
		s.Expect(manager().Create(s.ctx, job, client.DryRunAll)).To(Succeed(), name)
		s.Expect(job.Spec.ManagedBy).To(c.want, name)
	}
}

// addQueueWithoutCheck makes a LocalQueue on the manager whose jobs run there.
func (s *site) addQueueWithoutCheck(name string) {
	s.t.Helper()
	cq := &kueue.ClusterQueue{}
	s.Expect(manager().Get(s.ctx, client.ObjectKey{Name: s.namespace}, cq)).To(Succeed())
	plain := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + name}, Spec: cq.Spec}
	plain.Spec.AdmissionChecksStrategy = nil
	s.Expect(manager().Create(s.ctx, plain)).To(Succeed())
	s.Expect(manager().Create(s.ctx, &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(plain.Name)},
	})).To(Succeed())
	s.Eventually(func(g Gomega) {
		var list kueue.LocalQueueList
		g.Expect(manager().List(s.ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(2))
	}).Should(Succeed())
}

func TestJobOfAnotherManagerWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("mine", fixtures.ManagedBy("example.com/mine"))
	s.Eventually(func(g Gomega) {
		wl, check := s.workload(g, "mine"), s.check(g, "mine")
		g.Expect(wl.Spec.Active).To(Or(BeNil(), HaveValue(BeTrue())), "a job that waits is not deactivated")
		g.Expect(check.State).To(Equal(kueue.CheckStatePending))
		g.Expect(check.Message).To(ContainSubstring(`Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "example.com/mine"`))
	}).Should(Succeed())
	for _, w := range s.workers {
		s.Expect(s.copies(s, w)).To(BeEmpty())
	}
	s.Expect(s.creations(s, "mine")).To(BeEmpty())
}

func TestIndexedJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("indexed", fixtures.Indexed(), fixtures.Pods(4, 2), fixtures.RunsFor(time.Second))
	done := s.awaitComplete("indexed")
	s.Expect(done.Status.CompletedIndexes).To(Equal("0-3"))
	s.Expect(done.Status.Succeeded).To(BeEquivalentTo(4))
	s.awaitNothingOn(s.workers...)
}

func TestFailedJobFailsOnTheManager(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("broken", fixtures.Fails(1), fixtures.RunsFor(time.Second))
	s.Eventually(func(g Gomega) {
		job := s.job(g, "manager", "broken")
		g.Expect(ended(job, batchv1.JobFailed)).To(BeTrue(), "condition Failed")
		g.Expect(job.Status.Failed).To(BeEquivalentTo(2))
		g.Expect(job.Status.Conditions).To(ContainElement(And(
			HaveField("Type", batchv1.JobFailed), HaveField("Reason", batchv1.JobReasonBackoffLimitExceeded))))
		g.Expect(s.workload(g, "broken").Status.Conditions).To(ContainElement(And(
			HaveField("Type", kueue.WorkloadFinished), HaveField("Reason", kueue.WorkloadFinishedReasonFailed))))
	}).Should(Succeed())
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce("broken")
}

func TestTTLDeletesTheManagersJobAndRunsNothingAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("brief", fixtures.TTL(8), fixtures.RunsFor(time.Second))
	s.awaitComplete("brief")
	s.Eventually(func(g Gomega) {
		g.Expect(s.job(g, "manager", "brief")).To(BeNil())
	}).Should(Succeed(), "the TTL should delete the Job once it is finished")
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce("brief")
}

func TestLongAndGeneratedNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := strings.Repeat("long-name-", 6) + "end" // 63 characters, the most that a Job can have
	s.submit(long, fixtures.RunsFor(time.Second))
	generated := fixtures.Job(s.namespace, "", fixtures.RunsFor(time.Second))
	generated.GenerateName = "made-up-"
	s.Expect(manager().Create(s.ctx, generated)).To(Succeed())
	for _, name := range []string{long, generated.Name} {
		s.awaitComplete(name)
		s.expectCreatedOnce(name)
	}
	s.awaitNothingOn(s.workers...)
}

// Kueue starts a Job that its user suspends again as long as its Workload is admitted; so nothing happens to the copy.
func TestSuspendByTheUserIsUndoneByKueue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.RunsFor(8*time.Second))
	worker, uid := s.awaitRunning("train")
	yes := true
	update(s, "manager", s.job(s, "manager", "train"), func(j *jobType) { j.Spec.Suspend = &yes })
	s.Eventually(func(g Gomega) {
		job := s.job(g, "manager", "train")
		g.Expect(suspended(job) && !ended(job, batchv1.JobComplete)).To(BeFalse(), "still suspended, and not because it was over before")
	}).Should(Succeed())
	if copied := s.job(s, worker, "train"); copied != nil {
		s.Expect(copied.UID).To(Equal(uid))
		s.Expect(suspended(copied)).To(BeFalse())
	}
	s.awaitComplete("train")
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce("train")
}
