package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/customjobs"
	"ferry.dev/ferry/test/fixtures"
)

// TestPipelineRunGoesToAWorkerAndComesBack, with a CRD that comes while Ferry runs.
func TestPipelineRunGoesToAWorkerAndComesBack(t *testing.T) {
	t.Parallel()
	s := newCustomSite(t, customjobs.PipelineRun)
	s.Expect(s.fetch("http://"+fleet.Ferry().HealthAddress+"/readyz")).To(Equal("ok"), "ready without the CRDs")
	s.install("manager", "w1", "w2")

	s.submit("build", map[string]string{customjobs.RunsFor: "4s"})
	worker := s.awaitCustomRunning("build")
	original, copied := s.custom(s, "manager", "build"), s.custom(s, worker, "build")
	s.Expect(managedBy(original)).To(Equal(kueue.MultiKueueControllerName), "by the webhook")
	s.Expect(managedBy(copied)).To(BeEmpty())
	s.Expect(copied.GetAnnotations()).To(HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, string(original.GetUID())))
	done := s.awaitCustomEnded("build", kueue.WorkloadFinishedReasonSucceeded)
	s.Expect(s.kind.Read(done).Failed).To(BeFalse())
	s.awaitNoCustomOn(s.workers...)

	s.submit("broken", map[string]string{customjobs.Fails: "yes"})
	done = s.awaitCustomEnded("broken", kueue.WorkloadFinishedReasonFailed)
	s.Expect(s.kind.Read(done).Failed).To(BeTrue())
	s.awaitNoCustomOn(s.workers...)
	for _, job := range []string{"build", "broken"} {
		s.Expect(sum(s.customCreations(job))).To(Equal(1), job)
	}
}

// TestPipelineRunIsEvictedAndRunsAgain: nothing of the job runs in between, and the manager shows that.
func TestPipelineRunIsEvictedAndRunsAgain(t *testing.T) {
	t.Parallel()
	s := newCustomSite(t, customjobs.PipelineRun)
	s.install("manager", "w1", "w2")
	s.submit("build", map[string]string{customjobs.RunsFor: "10m"})
	first := s.awaitCustomRunning("build")
	s.setStopPolicy("manager", kueue.HoldAndDrain)
	s.awaitNoCustomOn(s.workers...)
	s.Eventually(func(g Gomega) {
		g.Expect(s.custom(g, "manager", "build").Object).NotTo(HaveKey("status"), "nothing runs")
	}).Should(Succeed())
	s.setStopPolicy("manager", kueue.None)
	s.awaitCustomRunning("build")
	s.Expect(sum(s.customCreations("build"))).To(Equal(2), "first on %s", first)
	s.Expect(manager().Delete(s.ctx, s.custom(s, "manager", "build"))).To(Succeed())
	s.awaitNoCustomOn(s.workers...)
}

func managedBy(job *unstructured.Unstructured) string {
	by, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
	return by
}

// TestWorkflowsWhereTheirCRDIs: CRDs come and go, on the manager and on single workers.
func TestWorkflowsWhereTheirCRDIs(t *testing.T) {
	t.Parallel()
	s := newCustomSite(t, customjobs.Workflow, fixtures.CPUOf("w1", "8"), fixtures.CPUOf("w2", "4"))
	s.install("manager", "w2")

	// Only w2 has the kind, and has no room for the first.
	s.submit("large", map[string]string{customjobs.CPU: "6"})
	s.awaitCustomMessage("large", "Offered to w2 (waits for quota)", "skipped w1: the worker does not serve Workflow in argoproj.io/v1alpha1")
	s.submit("small", nil)
	s.awaitCustomEnded("small", kueue.WorkloadFinishedReasonSucceeded)
	s.Expect(s.customCreations("small")).To(Equal(map[string]int{"w2": 1}))
	s.Expect(s.custom(s, "manager", "small").GetLabels()).To(HaveKeyWithValue(customjobs.InstanceID, "multikueue"), "by the webhook")

	// w1 gets it: the waiting job is offered there without anybody's doing.
	s.install("w1")
	s.awaitCustomEnded("large", kueue.WorkloadFinishedReasonSucceeded)
	s.Expect(s.customCreations("large")).To(Equal(map[string]int{"w1": 1}))
	s.awaitNoCustomOn(s.workers...)

	// w1 loses it, with the job that ran there: it runs again on w2.
	s.setStopPolicy("w2", kueue.Hold)
	s.submit("moves", map[string]string{customjobs.RunsFor: "10m"})
	s.Expect(s.awaitCustomRunning("moves")).To(Equal("w1"))
	s.setStopPolicy("w2", kueue.None)
	s.uninstall("w1")
	s.Eventually(func(g Gomega) {
		g.Expect(s.customWorkload(g, "moves").Status.ClusterName).To(HaveValue(Equal("w2")))
	}).Should(Succeed())
	s.Expect(s.awaitCustomRunning("moves")).To(Equal("w2"))
	s.submit("waits", map[string]string{customjobs.CPU: "6"})
	s.awaitCustomMessage("waits", "skipped w1: the worker does not serve Workflow")

	// The manager loses it, with all its jobs: nothing of them stays. Then it comes back.
	said := s.unreadable()
	s.uninstall("manager")
	s.awaitNoCustomOn(s.workers...)
	s.Eventually(func() int { return s.unreadable() }).Should(BeNumerically(">", said))
	s.Expect(s.fetch("http://" + fleet.Ferry().HealthAddress + "/readyz")).To(Equal("ok"))
	s.Expect(manager().DeleteAllOf(s.ctx, &kueue.Workload{}, client.InNamespace(s.namespace))).To(Succeed())
	s.install("manager")
	s.submit("again", nil)
	s.awaitCustomEnded("again", kueue.WorkloadFinishedReasonSucceeded)
	s.Expect(s.customCreations("again")).To(Equal(map[string]int{"w2": 1}))
	s.awaitNoCustomOn(s.workers...)
}

// unreadable counts how often Ferry said that the kind cannot be read on the manager.
func (s *customSite) unreadable() int {
	log, err := os.ReadFile(fleet.Component("ferry").LogFile())
	s.Expect(err).NotTo(HaveOccurred())
	return len(regexp.MustCompile(`cannot be read on the manager.*`+s.kind.GVK.GroupKind().String()).FindAll(log, -1))
}

func TestFerryNamesAllBadCustomKindsAtOnce(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "bad.yaml")
	writeFile(t, file, `apiVersion: config.ferry.dev/v1alpha1
kind: Configuration
multiKueue:
  externalFrameworks:
  - name: PipelineRun
  - {name: Job.batch}
  - {name: A.v1.example.com, managedBy: status.by, drop: [status, spec..a], flow: [metadata.name], suspend: spec}
  - {name: A.v2.example.com}
`)
	code, output := runFerry(t, "--config", file)
	g.Expect(code).To(Equal(1), output)
	for _, field := range []string{"[0].name", "[1].name", "[2].managedBy", "[2].drop[0]", "[2].drop[1]", "[2].flow[0]", "[2].suspend", "[3].name"} {
		g.Expect(output).To(ContainSubstring("multiKueue.externalFrameworks" + field + ": "))
	}
}
