package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/test/fixtures"
)

// awaitWarning waits until an event about the object says this.
func (s *site) awaitWarning(kind, name, says string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		var events corev1.EventList
		g.Expect(manager().List(s.ctx, &events, client.InNamespace(s.namespace))).To(Succeed())
		var messages []string
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Type == corev1.EventTypeWarning {
				messages = append(messages, e.Message)
			}
		}
		g.Expect(messages).To(ContainElement(ContainSubstring(says)))
	}).Should(Succeed(), "a warning about %s %s", kind, name)
}

// TestJobsThatRequestNothingSaySo: Kueue admits them without the check, so nothing runs them; their users read it.
func TestJobsThatRequestNothingSaySo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	s.Expect(manager().Create(s.ctx, fixtures.Job(s.namespace, "modest", func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	}))).To(Succeed())
	set := s.sample("jobset")
	s.leaveKind(set)
	jobs, _, err := unstructured.NestedSlice(set.Object, "spec", "replicatedJobs")
	s.Expect(err).NotTo(HaveOccurred())
	for _, job := range jobs {
		containers, _, _ := unstructured.NestedSlice(job.(map[string]any), "template", "spec", "template", "spec", "containers")
		for _, c := range containers {
			delete(c.(map[string]any), "resources")
		}
		s.Expect(unstructured.SetNestedSlice(job.(map[string]any), containers, "template", "spec", "template", "spec", "containers")).To(Succeed())
	}
	s.Expect(unstructured.SetNestedSlice(set.Object, jobs, "spec", "replicatedJobs")).To(Succeed())
	s.create("manager", set)
	s.submitPod("modest", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })
	for kind, name := range map[string]string{"Job": "modest", "JobSet": set.GetName(), "Pod": "modest"} {
		s.awaitWarning(kind, name, "requests no resource")
	}
	s.awaitNothingOn(s.workers...)
}

// TestRayJobOnAnExistingCluster: Kueue makes no Workload for it, so nothing keeps its own controller away.
func TestRayJobOnAnExistingCluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.named(schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}, "borrows")
	job.SetLabels(map[string]string{fixtures.QueueLabel: fixtures.Queue})
	job.Object["spec"] = map[string]any{"entrypoint": "python job.py", "clusterSelector": map[string]any{"ray.io/cluster": "shared"}}
	s.Expect(manager().Create(s.ctx, job, client.DryRunAll)).To(Succeed())
	by, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
	s.Expect(by).NotTo(Equal("kueue.x-k8s.io/multikueue"))
}

// TestWorkersThatOutliveTheirMaster: the last status on the manager is that of the job at rest.
func TestWorkersThatOutliveTheirMaster(t *testing.T) {
	startOperator(t, "training-operator")
	s := newSite(t)
	job := s.sample("pytorchjob")
	s.leaveKind(job)
	s.Expect(unstructured.SetNestedField(job.Object, "None", "spec", "runPolicy", "cleanPodPolicy")).To(Succeed())
	for role, runs := range map[string]time.Duration{"Master": 3 * time.Second, "Worker": 20 * time.Second} {
		s.Expect(unstructured.SetNestedField(job.Object, runs.String(), "spec", "pytorchReplicaSpecs", role, "template", "metadata", "annotations", playground.RunForAnnotation)).To(Succeed())
	}
	s.create("manager", job)
	s.awaitOver(job, "Succeeded")
	s.awaitNothingLeft(job)
	s.Eventually(func(g Gomega) {
		g.Expect(number(s.read(g, "manager", job), "replicaStatuses", "Worker", "active")).To(BeZero())
	}).Should(Succeed(), "nothing of it runs, and the manager says so")
}
