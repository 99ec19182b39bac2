package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

func TestJobRunsOnOneWorkerIsMirroredLiveAndCleanedUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.Pods(4, 2), fixtures.RunsFor(5*time.Second))
	worker, _ := s.awaitRunning("train")

	original, copied := s.job(s, "manager", "train"), s.job(s, worker, "train")
	s.Expect(copied).NotTo(BeNil())
	s.Expect(original.Spec.ManagedBy).To(HaveValue(Equal(kueue.MultiKueueControllerName)))
	s.Expect(copied.Spec.ManagedBy).To(Or(BeNil(), HaveValue(Equal("kubernetes.io/job-controller"))))
	s.Expect(copied.Labels).To(HaveKeyWithValue(kueue.MultiKueueOriginLabel, HavePrefix("ferry-")))
	s.Expect(copied.Annotations).To(HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, string(original.UID)))
	s.Expect(copied.OwnerReferences).To(BeEmpty())
	for _, wl := range s.workloads(s, worker) {
		s.Expect(wl.Annotations).To(HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, string(s.workload(s, "train").UID)))
	}
	s.awaitNothingOn(other(worker))
	s.awaitEvent(s.namespace, "MultiKueue", `The workload was admitted on "`+worker+`"`)
	s.awaitMessage("train", `The workload was admitted on "`+worker+`"`)
	s.Eventually(func(g Gomega) {
		g.Expect(s.job(g, "manager", "train").Status.Succeeded).To(BeNumerically("~", 2, 1), "completions come in while the Job runs")
	}).Should(Succeed())

	done := s.awaitComplete("train")
	s.Expect(done.Status.Succeeded).To(BeEquivalentTo(4))
	s.Expect(done.Status.Active).To(BeZero())
	s.Expect(done.Status.StartTime).NotTo(BeNil())
	s.Expect(done.Status.CompletionTime).NotTo(BeNil())
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce("train")
}

func TestJobGoesWhereItFits(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.CPUOf("w1", "1"), fixtures.CPUOf("w2", "8"))
	s.submit("large", fixtures.CPU("4"), fixtures.RunsFor(time.Second))
	s.awaitComplete("large")
	s.Expect(s.creations(s, "large")).To(Equal(map[string]int{"w2": 1}))
	s.awaitNothingOn(s.workers...)
}

func TestJobThatFitsNowhereSaysSoAndRunsOnceThereIsRoom(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("1"))
	s.submit("large", fixtures.CPU("2"), fixtures.RunsFor(time.Second))
	s.awaitMessage("large", "w1", "w2")
	s.Expect(s.workload(s, "large").Status.NominatedClusterNames).To(ConsistOf("w1", "w2"))
	s.Expect(s.check(s, "large").State).To(Equal(kueue.CheckStatePending))
	s.setCPU("w2", "4")
	s.awaitComplete("large")
	s.Expect(s.creations(s, "large")).To(Equal(map[string]int{"w2": 1}))
	s.awaitNothingOn(s.workers...)
}

func TestOtherAdmissionChecksComeFirst(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	foreign := s.namespace + "-budget"
	s.makeForeignCheckOn("manager", foreign)
	s.installQueues(fixtures.Edit(func(cluster string, q *kueue.ClusterQueue) {
		if cluster == "manager" {
			q.Spec.AdmissionChecksStrategy.AdmissionChecks = append(q.Spec.AdmissionChecksStrategy.AdmissionChecks,
				kueue.AdmissionCheckStrategyRule{Name: kueue.AdmissionCheckReference(foreign)})
		}
	}))
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitMessage("train", "Waiting for other admission checks: "+foreign)
	s.Consistently(func(g Gomega) {
		for _, w := range s.workers {
			g.Expect(s.copies(g, w)).To(BeEmpty())
		}
		g.Expect(s.workload(g, "train").Status.NominatedClusterNames).To(BeEmpty())
	}).Should(Succeed())

	s.passCheck("manager", foreign)
	s.awaitComplete("train")
	s.awaitNothingOn(s.workers...)
}

// makeForeignCheck makes an AdmissionCheck whose controller is the test.
func (s *site) makeForeignCheckOn(cluster, name string) {
	s.t.Helper()
	check := &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kueue.AdmissionCheckSpec{ControllerName: "example.com/budget"},
	}
	s.putOn(cluster, check)
	s.Eventually(func(g Gomega) {
		g.Expect(on(cluster).Get(s.ctx, client.ObjectKeyFromObject(check), check)).To(Succeed())
		meta.SetStatusCondition(&check.Status.Conditions, metav1.Condition{
			Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active", Message: "The test decides",
		})
		g.Expect(on(cluster).Status().Update(s.ctx, check)).To(Succeed())
	}).Should(Succeed())
}

func TestChangedPriorityReachesTheCopy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	low, high := s.priorityClass("low", 1, "manager"), s.priorityClass("high", 1000, "manager")
	s.submit("train", fixtures.Priority(low), fixtures.RunsOn())
	worker, uid := s.awaitRunning("train")
	update(s, "manager", s.job(s, "manager", "train"), func(j *jobType) { j.Labels[fixtures.PriorityLabel] = high })
	s.Eventually(func(g Gomega) {
		wls := s.workloads(g, worker)
		g.Expect(wls).To(HaveLen(1))
		g.Expect(wls[0].Spec.Priority).To(HaveValue(BeEquivalentTo(1000)))
	}).Should(Succeed())
	s.Expect(s.job(s, worker, "train").UID).To(Equal(uid), "the job goes on")
}

// Kueue lets Workloads follow the class that they name, at once, so that a lower job would preempt a higher one there.
func TestPriorityDoesNotFollowAClassOfTheWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("2"))
	s.setStopPolicy("w2", kueue.HoldAndDrain)
	high, low := s.priorityClass("hi", 100, "manager", "w1", "w2"), s.priorityClass("lo", 10, "manager", "w1", "w2")
	s.submit("hi", fixtures.CPU("2"), fixtures.Priority(high), fixtures.RunsOn())
	uid := s.awaitRunningOn("w1", "hi")
	s.submit("lo", fixtures.CPU("2"), fixtures.Priority(low), fixtures.RunsOn())
	s.awaitMessage("lo", "w1 (waits for quota)")

	s.setClass("w1", low, 200)
	s.setClass("w1", high, 1)
	s.Consistently(func(g Gomega) {
		for _, wl := range s.workloads(g, "w1") {
			g.Expect(wl.Spec.Priority).To(HaveValue(Or(BeEquivalentTo(100), BeEquivalentTo(10))), wl.Name)
			g.Expect(meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)).To(BeNil(), wl.Name)
		}
		g.Expect(s.job(g, "w1", "hi")).To(HaveValue(HaveField("UID", uid)))
	}).Should(Succeed())
}

// setClass changes what a WorkloadPriorityClass is worth on a cluster.
func (s *site) setClass(cluster, name string, value int32) {
	s.t.Helper()
	update(s, cluster, &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(c *kueue.WorkloadPriorityClass) { c.Value = value })
}

// priorityClass makes a WorkloadPriorityClass of this site in some clusters and returns its name.
func (s *site) priorityClass(name string, value int32, clusters ...string) string {
	s.t.Helper()
	name = s.namespace + "-" + name
	for _, c := range clusters {
		s.Expect(on(c).Create(s.ctx, fixtures.PriorityClass(name, value))).To(Succeed())
	}
	return name
}

func TestBurstIsCreatedOnceEach(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	jobs := numbered("burst", 20)
	for _, name := range jobs {
		s.submit(name, fixtures.RunsFor(time.Second))
	}
	for _, name := range jobs {
		s.awaitComplete(name)
	}
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce(jobs...)
}
