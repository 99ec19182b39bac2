package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// Kueue's features, each as users of dispatched jobs meet it; docs/kueue-features.md has what comes of them.

// TestPartialAdmission: a worker runs no more pods than the manager reserved quota for, nor than its own quota allows.
func TestPartialAdmission(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]struct {
		manager, worker string
		want            int32
	}{
		"the worker has less":  {"4", "2", 2},
		"the manager has less": {"2", "4", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, fixtures.ManagerCPU(quota.manager), fixtures.WorkerCPU(quota.worker))
			s.submit("train", fixtures.CPU("1"), fixtures.Pods(4, 4), fixtures.RunsFor(3*time.Second), func(job *batchv1.Job) {
				job.Annotations = merged(job.Annotations, map[string]string{"kueue.x-k8s.io/job-min-parallelism": "1"})
			})
			worker, _ := s.awaitRunning("train")
			s.Expect(s.job(s, worker, "train").Spec.Parallelism).To(HaveValue(Equal(quota.want)), "pods at once on %s", worker)
			reserved := s.workload(s, "train").Status.Admission.PodSetAssignments[0].Count
			s.Expect(*reserved).To(BeNumerically(">=", quota.want), "the manager reserved for as many")
			s.awaitComplete("train")
			s.expectCreatedOnce("train")
		})
	}
}

// TestBorrowingThroughCohorts: both sides have the quota only by what others lend them, in a tree of cohorts.
func TestBorrowingThroughCohorts(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	cohort := func(part, cluster string) kueue.CohortReference {
		return kueue.CohortReference(s.namespace + "-" + part + "-of-" + cluster)
	}
	s.installQueues(fixtures.ManagerCPU("1"), fixtures.WorkerCPU("1"), fixtures.Edit(func(cluster string, q *kueue.ClusterQueue) {
		q.Spec.CohortName = cohort("ours", cluster)
	}))
	for _, cluster := range append([]string{"manager"}, s.workers...) {
		for _, part := range []string{"ours", "theirs"} {
			s.putOn(cluster, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: string(cohort(part, cluster))}, Spec: kueue.CohortSpec{ParentName: cohort("all", cluster)}})
		}
		lender := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.clusterQueue(cluster)}}
		s.Expect(on(cluster).Get(s.ctx, client.ObjectKeyFromObject(lender), lender)).To(Succeed())
		lender = &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-lender-on-" + cluster}, Spec: *lender.Spec.DeepCopy()}
		lender.Spec.CohortName = cohort("theirs", cluster)
		lender.Spec.AdmissionChecksStrategy = nil
		for i := range lender.Spec.ResourceGroups[0].Flavors[0].Resources {
			lender.Spec.ResourceGroups[0].Flavors[0].Resources[i].NominalQuota = quantityOf("8")
		}
		s.putOn(cluster, lender)
	}
	s.submit("train", fixtures.CPU("3"), fixtures.RunsFor(time.Second))
	s.awaitComplete("train")
	s.expectCreatedOnce("train")
}

// TestMaximumExecutionTime: Kueue ends the job for good, wherever the time is noticed first.
func TestMaximumExecutionTime(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(s *site, worker string){
		"as it comes":    func(*site, string) {},
		"on the worker":  func(s *site, worker string) { s.hasRunFor(worker, "train", 5) },
		"on the manager": func(s *site, _ string) { s.hasRunFor("manager", "train", 5) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.submit("train", fixtures.RunsOn(), func(job *batchv1.Job) { job.Labels["kueue.x-k8s.io/max-exec-time-seconds"] = "8" })
			worker, _ := s.awaitRunning("train")
			first(s, worker)
			s.Eventually(func(g Gomega) {
				wl := s.workload(g, "train")
				g.Expect(wl.Spec.Active).To(HaveValue(BeFalse()), "%v", messagesOf(wl))
				g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved)).To(BeFalse())
				g.Expect(suspended(s.job(g, "manager", "train"))).To(BeTrue())
			}).Should(Succeed())
			s.awaitNothingOn(s.workers...)
			s.expectCreatedOnce("train")
		})
	}
}

// hasRunFor has a cluster's Kueue believe that the job ran that many seconds before.
func (s *site) hasRunFor(cluster, job string, seconds int32) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, wl := range s.workloads(g, cluster) {
			wl.Status.AccumulatedPastExecutionTimeSeconds = &seconds
			g.Expect(on(cluster).Status().Update(s.ctx, &wl)).To(Succeed())
		}
	}).Should(Succeed())
}

// TestStoppedLocalQueues: on a worker the job moves; on the manager it stops, and goes on later.
func TestStoppedLocalQueues(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	s.stopLocalQueue(worker, kueue.HoldAndDrain)
	s.awaitRunningOn(other(worker), "train")
	s.stopLocalQueue("manager", kueue.HoldAndDrain)
	s.awaitNothingOn(s.workers...)
	s.awaitNoQuota("train")
	s.stopLocalQueue("manager", kueue.None)
	s.awaitRunningOn(other(worker), "train")
}

func (s *site) stopLocalQueue(cluster string, policy kueue.StopPolicy) {
	s.t.Helper()
	update(s, cluster, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fixtures.Queue}}, func(q *kueue.LocalQueue) { q.Spec.StopPolicy = &policy })
}

// TestReclaimablePods: as pods of a job end, others may have their quota, on the worker and on the manager.
func TestReclaimablePods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.Pods(3, 2), fixtures.RunsFor(3*time.Second))
	worker, _ := s.awaitRunning("train")
	s.Eventually(func(g Gomega) {
		one := []kueue.ReclaimablePod{{Name: kueue.DefaultPodSetName, Count: 1}}
		g.Expect(s.workload(g, "train").Status.ReclaimablePods).To(Equal(one), "on the manager")
		there := s.workloads(g, worker)
		g.Expect(there).To(HaveLen(1))
		g.Expect(there[0].Status.ReclaimablePods).To(Equal(one), "on %s", worker)
	}).Should(Succeed())
	s.awaitComplete("train")
}

// TestLimitRangesAndOverheadsThatDiffer: each cluster has defaults of its own for what pods request.
func TestLimitRangesAndOverheadsThatDiffer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for cluster, cpu := range map[string]string{"manager": "100m", "w1": "200m", "w2": "300m"} {
		s.putOn(cluster, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: quantityOf(cpu)}, Default: corev1.ResourceList{corev1.ResourceCPU: quantityOf("1")},
		}}}})
		s.putOn(cluster, &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Handler: "sandbox",
			Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: quantityOf(cpu)}},
		})
	}
	s.submit("defaults", fixtures.RunsFor(time.Second), func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	})
	s.submit("sandboxed", fixtures.RunsFor(time.Second), func(job *batchv1.Job) { job.Spec.Template.Spec.RuntimeClassName = ptr.To(s.namespace) })
	for _, name := range []string{"defaults", "sandboxed"} {
		s.awaitComplete(name)
	}
	s.expectCreatedOnce("defaults", "sandboxed")
	s.awaitNothingOn(s.workers...)
}

// TestChecksOnWorkers: a worker counts only once its own admission checks are ready; until then the others may win.
func TestChecksOnWorkers(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	check := s.namespace + "-gate"
	for _, w := range s.workers {
		s.makeForeignCheckOn(w, check)
	}
	s.installQueues(fixtures.Edit(func(cluster string, q *kueue.ClusterQueue) {
		if cluster != "manager" {
			q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: kueue.AdmissionCheckReference(check)}}}
		}
	}))
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitMessage("train", "w1 (quota reserved, waits for its admission checks)", "w2 (quota reserved, waits for its admission checks)")
	s.Expect(s.creations(s, "train")).To(BeEmpty())
	s.passCheck("w2", check)
	s.awaitComplete("train")
	s.Expect(s.creations(s, "train")).To(Equal(map[string]int{"w2": 1}))
	s.awaitNothingOn(s.workers...)
}

// passCheck makes a check Ready on all of this site's Workloads in a cluster.
func (s *site) passCheck(cluster, name string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		list := s.workloads(g, cluster)
		g.Expect(list).NotTo(BeEmpty())
		for i := range list {
			for j := range list[i].Status.AdmissionChecks {
				if c := &list[i].Status.AdmissionChecks[j]; string(c.Name) == name {
					c.State, c.Message, c.LastTransitionTime = kueue.CheckStateReady, "passed", metav1.Now()
				}
			}
			g.Expect(on(cluster).Status().Update(s.ctx, &list[i])).To(Succeed())
		}
	}).Should(Succeed())
}
