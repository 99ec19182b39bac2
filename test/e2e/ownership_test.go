package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

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

// TestOthersWorkloadsChangeNothing: anybody who may create Workloads may name a running job as the owner of one.
func TestOthersWorkloadsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	victim := s.submit("victim", fixtures.RunsOn())
	worker, uid := s.awaitRunning("victim")
	mine := s.workload(s, "victim").Name
	pair := labelled("pair", "2")
	s.submitMember(pair, "driver")
	member := s.submitMember(pair, "executor")
	groupWorker := s.awaitGroup(pair, 2)
	pods := s.uids(s, groupWorker, "pair")

	yes, no := true, false
	job := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "victim", UID: victim.UID}
	controller := job
	controller.Controller = &yes
	pod := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: member.Name, UID: member.UID, Controller: &yes}
	for name, c := range map[string]struct {
		owner  metav1.OwnerReference
		cpu    string
		active *bool
	}{
		"too-big": {controller, "5k", nil}, "fits": {job, "1", nil}, "inactive": {controller, "1", &no}, "of-a-member": {pod, "1", nil},
	} {
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, OwnerReferences: []metav1.OwnerReference{c.owner}}}
		like := s.podOf("x").Spec
		like.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantityOf(c.cpu)}
		wl.Spec = kueue.WorkloadSpec{QueueName: fixtures.Queue, Active: c.active, PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: like}}}}
		s.Expect(manager().Create(s.ctx, wl)).To(Succeed(), name)
		s.Consistently(func(g Gomega) {
			g.Expect(s.job(g, worker, "victim")).To(HaveValue(HaveField("UID", uid)), name)
			g.Expect(s.uids(g, groupWorker, "pair")).To(Equal(pods), name)
			g.Expect(s.podsNamed(g, other(groupWorker), "pair")).To(BeEmpty(), name)
			own := &kueue.Workload{}
			g.Expect(manager().Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: mine}, own)).To(Succeed(), name)
			g.Expect(meta.FindStatusCondition(own.Status.Conditions, kueue.WorkloadEvicted)).To(BeNil(), name)
		}).Should(Succeed())
	}
}
