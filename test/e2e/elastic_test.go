package e2e_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// elastic lets Kueue change the size of a running Job, which begins with that many pods.
func elastic(pods int32) fixtures.JobOption {
	return func(job *batchv1.Job) {
		job.Annotations = map[string]string{"kueue.x-k8s.io/elastic-job": "true"}
		job.Spec.Parallelism = &pods
	}
}

// TestElasticJob: a Job on a worker with room for two pods grows to three and shrinks to two, and no pod that stays is touched.
func TestElasticJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("2"))
	s.submit("train", elastic(1), fixtures.RunsOn())
	worker, uid := s.awaitRunning("train")
	first := s.awaitLivePods(worker, 1)

	s.scaleJob("train", 3)
	s.Eventually(func(g Gomega) {
		g.Expect(s.present(g, "Job", "train").Status.AdmissionChecks).To(ContainElement(HaveField("Message", And(ContainSubstring("Growing"), ContainSubstring(worker), ContainSubstring("waits for quota")))))
	}).Should(Succeed(), "the check should say why the Job does not grow")
	s.Expect(s.job(s, worker, "train").Spec.Parallelism).To(HaveValue(BeEquivalentTo(1)), "no growth without quota")
	s.Expect(s.awaitLivePods(worker, 1)).To(Equal(first))

	s.setCPU(worker, "4")
	grown := s.awaitLivePods(worker, 3)
	s.expectKept(first, grown, 1)
	s.awaitSize("train", worker, 3)

	s.scaleJob("train", 2)
	shrunk := s.awaitLivePods(worker, 2)
	s.expectKept(shrunk, grown, 2)
	s.awaitSize("train", worker, 2)

	copied := s.job(s, worker, "train")
	s.Expect(copied.UID).To(Equal(uid), "the copy of the Job")
	s.Expect(copied.Labels).To(HaveKeyWithValue(kueue.MultiKueueOriginLabel, Not(BeEmpty())))
	s.Expect(s.copies(s, other(worker))).To(BeEmpty(), "copies on the other worker")
	s.Expect(s.creations(s, "train")).To(Equal(map[string]int{worker: 1}))

	s.succeed(worker)
	s.Eventually(func(g Gomega) {
		original := s.job(g, "manager", "train")
		g.Expect(ended(original, batchv1.JobComplete)).To(BeTrue(), "condition Complete in %v", original.Status)
		for _, wl := range s.workloads(g, "manager") {
			g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)).To(BeTrue(), "Workload %s is finished", wl.Name)
		}
	}).Should(Succeed())
	s.awaitNothingOn(s.workers...)
}

// TestElasticJobShrinksFirst: Kueue then compares the Job with a Workload that no other came before.
func TestElasticJobShrinksFirst(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", elastic(3), fixtures.RunsOn())
	worker, uid := s.awaitRunning("train")
	all := s.awaitLivePods(worker, 3)
	for _, pods := range []int32{2, 1, 2} {
		s.scaleJob("train", pods)
		s.awaitSize("train", worker, int64(pods))
		now := s.awaitLivePods(worker, int(pods))
		s.expectKept(all, now, min(len(all), len(now)))
		all = now
	}
	s.Expect(s.job(s, worker, "train").UID).To(Equal(uid))
	s.Expect(manager().Delete(s.ctx, s.job(s, "manager", "train"), background)).To(Succeed())
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce("train")
}

// TestElasticJobScaledWithoutFerry: it grows and shrinks while Ferry is away, which then brings the copy to the last size at once.
func TestElasticJobScaledWithoutFerry(t *testing.T) {
	s := alone(t)
	s.submit("train", elastic(1), fixtures.RunsOn())
	worker, uid := s.awaitRunning("train")
	first := s.awaitLivePods(worker, 1)
	s.stopFerry()
	s.scaleJob("train", 4)
	s.Eventually(func(g Gomega) {
		g.Expect(s.present(g, "Job", "train").Status.ClusterName).To(HaveValue(Equal(worker)), "Kueue assigns the next slice")
	}).Should(Succeed())
	s.scaleJob("train", 2)
	s.Eventually(func(g Gomega) {
		g.Expect(s.present(g, "Job", "train").Spec.PodSets[0].Count).To(BeEquivalentTo(2))
	}).Should(Succeed())
	s.Expect(s.job(s, worker, "train").Spec.Parallelism).To(HaveValue(BeEquivalentTo(1)))
	s.startFerry()
	s.awaitSize("train", worker, 2)
	s.expectKept(first, s.awaitLivePods(worker, 2), 1)
	s.Expect(s.job(s, worker, "train").UID).To(Equal(uid))
	s.expectCreatedOnce("train")
}

// TestElasticJobIsEvicted: a grown Job that the manager takes its quota from stops, and comes back in its last size.
func TestElasticJobIsEvicted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", elastic(1), fixtures.RunsOn())
	worker, uid := s.awaitRunning("train")
	s.scaleJob("train", 2)
	s.awaitSize("train", worker, 2)
	s.setStopPolicy("manager", kueue.HoldAndDrain)
	s.awaitNothingOn(s.workers...)
	s.setStopPolicy("manager", kueue.None)
	s.Eventually(func(g Gomega) {
		assigned := s.present(g, "Job", "train").Status.ClusterName
		g.Expect(assigned).NotTo(BeNil(), "clusterName")
		worker = *assigned
		g.Expect(s.job(g, worker, "train")).To(HaveValue(HaveField("UID", Not(Equal(uid)))), "the copy on %s", worker)
	}).Should(Succeed())
	s.awaitSize("train", worker, 2)
	s.awaitLivePods(worker, 2)
	s.Expect(s.copies(s, other(worker))).To(BeEmpty(), "copies on the other worker")
}

// TestElasticRayCluster: the workers of a RayCluster come and go; the head and those that stay are not touched.
func TestElasticRayCluster(t *testing.T) {
	startOperator(t, "kuberay")
	s := newSite(t)
	cluster := s.sample("raycluster")
	s.leaveKind(cluster)
	cluster.SetAnnotations(map[string]string{"kueue.x-k8s.io/elastic-job": "true"})
	made := s.create("manager", cluster)
	worker := s.awaitMirrored(cluster)
	s.awaitServing(cluster, worker)
	uid := s.read(s, worker, cluster).GetUID()
	pods := s.awaitLivePods(worker, 2)
	for _, replicas := range []int{3, 2} {
		update(s, "manager", cluster, func(o *unstructured.Unstructured) {
			groups, _, _ := unstructured.NestedSlice(o.Object, "spec", "workerGroupSpecs")
			groups[0].(map[string]any)["replicas"] = int64(replicas)
			s.Expect(unstructured.SetNestedSlice(o.Object, groups, "spec", "workerGroupSpecs")).To(Succeed())
		})
		now := s.awaitLivePods(worker, 1+replicas)
		s.expectKept(pods, now, min(len(pods), len(now)))
		pods = now
		s.Eventually(func(g Gomega) {
			original := s.read(g, "manager", cluster)
			ready, _, _ := unstructured.NestedInt64(original.Object, "status", "readyWorkerReplicas")
			g.Expect(ready).To(BeEquivalentTo(replicas), "ready workers, by the manager's status")
			g.Expect(statusOf(original)).To(Equal(statusOf(s.read(g, worker, cluster))))
			s.expectPresent(g, "RayCluster", cluster.GetName(), worker, int64(replicas))
		}).Should(Succeed())
	}
	s.Expect(s.read(s, worker, cluster).GetUID()).To(Equal(uid), "the copy")
	s.Expect(s.read(s, other(worker), cluster)).To(BeNil(), "on the other worker")
	s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
	s.awaitNothingLeft(cluster)
	s.expectNoPodEver()
}

func (s *site) scaleJob(name string, pods int32) {
	s.t.Helper()
	update(s, "manager", s.job(s, "manager", name), func(j *jobType) { j.Spec.Parallelism = &pods })
}

// awaitSize waits until a Job runs with that many pods by the manager's status, and its present slice is settled.
func (s *site) awaitSize(job, worker string, pods int64) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(s.job(g, "manager", job).Status.Active).To(BeEquivalentTo(pods), "active on the manager")
		g.Expect(s.job(g, "manager", job).Status.Ready).To(HaveValue(BeEquivalentTo(pods)), "ready on the manager")
		g.Expect(s.job(g, worker, job).Spec.Parallelism).To(HaveValue(BeEquivalentTo(pods)), "parallelism on %s", worker)
		s.expectPresent(g, "Job", job, worker, pods)
	}).Should(Succeed(), "%s should have %d pods", job, pods)
}

// expectPresent: the one unfinished slice has that size in its last pod set, on the manager and in its copy, and is admitted in both.
func (s *site) expectPresent(g Gomega, kind, name, worker string, pods int64) {
	wl := s.present(g, kind, name)
	copied := s.workloads(g, worker)
	g.Expect(copied).To(HaveLen(1), "copies on %s", worker)
	for _, one := range []*kueue.Workload{wl, &copied[0]} {
		g.Expect(one.Name).To(Equal(wl.Name))
		g.Expect(one.Spec.PodSets[len(one.Spec.PodSets)-1].Count).To(BeEquivalentTo(pods), "count in %s", one.Name)
		g.Expect(meta.IsStatusConditionTrue(one.Status.Conditions, kueue.WorkloadAdmitted)).To(BeTrue(), "%s is admitted; %v", one.Name, messagesOf(one))
	}
}

// present is the one slice of a job on the manager that is not finished.
func (s *site) present(g Gomega, kind, name string) *kueue.Workload {
	var found []*kueue.Workload
	for _, wl := range s.workloads(g, "manager") {
		if len(wl.OwnerReferences) == 1 && wl.OwnerReferences[0].Kind == kind && wl.OwnerReferences[0].Name == name &&
			!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) {
			found = append(found, &wl)
		}
	}
	g.Expect(found).To(HaveLen(1), "unfinished slices of %s", name)
	return found[0]
}

// awaitLivePods waits until that many pods run on a worker, and no others are there, and tells them by their UIDs.
func (s *site) awaitLivePods(worker string, count int) map[types.UID]string {
	s.t.Helper()
	var pods map[types.UID]string
	s.Eventually(func(g Gomega) {
		pods = map[types.UID]string{}
		for _, p := range s.livePods(g, worker) {
			g.Expect(p.Status.Phase).To(Equal(corev1.PodRunning), p.Name)
			pods[p.UID] = p.Name
		}
		g.Expect(pods).To(HaveLen(count))
	}).Should(Succeed(), "%d pods should run on %s", count, worker)
	return pods
}

func (s *site) livePods(g Gomega, worker string) []corev1.Pod {
	var list corev1.PodList
	g.Expect(on(worker).List(s.ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// expectKept: so many of the pods are the same before and after.
func (s *site) expectKept(before, after map[types.UID]string, count int) {
	s.t.Helper()
	same := maps.Clone(before)
	maps.DeleteFunc(same, func(uid types.UID, _ string) bool { return after[uid] == "" })
	s.Expect(same).To(HaveLen(count), "of the pods %v and %v", before, after)
}

// succeed lets all pods on a worker end well.
func (s *site) succeed(worker string) {
	s.t.Helper()
	for _, p := range s.livePods(s, worker) {
		before := p.DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		s.Expect(on(worker).Status().Patch(s.ctx, &p, client.MergeFrom(before))).To(Succeed())
	}
}
