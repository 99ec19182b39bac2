package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
	"ferry.dev/ferry/test/fixtures"
)

func TestIncrementalAsksOneWorkerAfterTheOther(t *testing.T) {
	s := alone(t, fixtures.CPUOf("w1", "1"))
	s.reconfigure(`  dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental
  incrementalDispatcherConfig: {stepSize: 1, roundTimeout: 4s}
`)
	// The new Ferry may reach one worker before the other.
	s.submit("warm-up", fixtures.RunsFor(3*time.Second))
	s.awaitComplete("warm-up")
	s.awaitNothingOn(s.workers...)
	at1, at2 := len(s.copiesMadeAt("w1")), len(s.copiesMadeAt("w2"))
	s.submit("small", fixtures.RunsFor(time.Second))
	s.awaitComplete("small")
	s.Expect(s.creations(s, "small")).To(Equal(map[string]int{"w1": 1}), "the first worker of the config has room")
	s.Expect(s.copiesMadeAt("w2")).To(HaveLen(at2))

	s.submit("large", fixtures.CPU("2"), fixtures.RunsFor(time.Second))
	s.Eventually(func(g Gomega) {
		g.Expect(s.workload(g, "large").Status.NominatedClusterNames).To(Equal([]string{"w1"}))
	}).Should(Succeed())
	s.awaitComplete("large")
	s.Expect(s.creations(s, "large")).To(Equal(map[string]int{"w2": 1}))
	first, second := s.copiesMadeAt("w1")[at1:], s.copiesMadeAt("w2")[at2:]
	s.Expect(first).To(HaveLen(2), "one for each job")
	s.Expect(second).To(HaveLen(1))
	// Times in Kubernetes' status are whole seconds, so a round may seem up to one shorter.
	s.Expect(second[0].Sub(first[1])).To(BeNumerically(">=", 3*time.Second), "the round lasts 4s")
}

// copiesMadeAt tells when Ferry made Workloads of this site on a worker.
func (s *site) copiesMadeAt(worker string) []time.Time {
	s.t.Helper()
	var at []time.Time
	s.Expect(audit.Each(fleet.Worker(worker).AuditLog(), time.Time{}, func(r audit.Request) {
		if r.User == playground.UserFerry && r.Verb == "create" && r.Resource == "workloads" && r.Namespace == s.namespace && r.Code == 201 {
			at = append(at, r.At)
		}
	})).To(Succeed())
	return at
}

func TestExternalDispatcherNominates(t *testing.T) {
	s := alone(t)
	s.reconfigure("  dispatcherName: example.com/ours\n")
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitMessage("train", `Waiting for the dispatcher "example.com/ours" to nominate workers`)
	for _, w := range s.workers {
		s.Expect(s.copies(s, w)).To(BeEmpty())
	}
	s.nominate("train", client.FieldOwner("ours"))
	s.awaitComplete("train")
	s.Expect(s.creations(s, "train")).To(Equal(map[string]int{"w2": 1}))
	s.Expect(s.copiesMadeAt("w1")).To(BeEmpty())

	// Whoever the dispatcher says that it is, also Kueue itself, the claim takes the nomination's place.
	for _, owner := range []string{"kueue-admission", "kueue"} {
		s.submit(owner, fixtures.RunsFor(time.Second))
		s.nominate(owner, client.FieldOwner(owner))
		s.awaitComplete(owner)
		s.Expect(s.creations(s, owner)).To(Equal(map[string]int{"w2": 1}))
	}
	s.awaitNothingOn(s.workers...)
}

// nominate names w2 for a job, as a dispatcher with this field owner does.
func (s *site) nominate(job string, owner client.FieldOwner) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		wl := s.workload(g, job)
		g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved)).To(BeTrue())
		before := wl.DeepCopy()
		wl.Status.NominatedClusterNames = []string{"w2"}
		g.Expect(manager().Status().Patch(s.ctx, wl, client.MergeFrom(before), owner)).To(Succeed())
	}).Should(Succeed())
}

// TestDispatcherOfTheExamples: the example's page of code, as built and run by whoever tries it, sends a team's jobs to
// one worker.
func TestDispatcherOfTheExamples(t *testing.T) {
	s := alone(t)
	s.reconfigure("  dispatcherName: example.com/by-queue\n")
	binary := filepath.Join(t.TempDir(), "dispatcher")
	out, err := exec.Command("go", "build", "-o", binary, "../../examples/dispatcher").CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	dispatcher := exec.Command(binary, "--kubeconfig", fleet.Manager().AdminKubeconfig())
	s.Expect(dispatcher.Start()).To(Succeed())
	t.Cleanup(func() { _, _ = dispatcher.Process.Kill(), dispatcher.Wait() })
	jobs := numbered("train", 3)
	for _, job := range jobs {
		s.submit(job, fixtures.RunsFor(time.Second))
	}
	workers := map[string]bool{}
	for _, job := range jobs {
		s.awaitComplete(job)
		for worker := range s.creations(s, job) {
			workers[worker] = true
		}
	}
	s.Expect(workers).To(HaveLen(1), "one worker for one queue")
	s.expectCreatedOnce(jobs...)
}

// reconfigure adds to the section multiKueue of Ferry's config and restarts Ferry, until the test ends.
func (s *site) reconfigure(more string) {
	s.t.Helper()
	file := filepath.Join(fleet.Dir(), "ferry", "config.yaml")
	before, err := os.ReadFile(file)
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(func() { s.restartWith(file, before) })
	s.restartWith(file, append(append([]byte{}, before...), more...))
}

func (s *site) restartWith(file string, config []byte) {
	s.t.Helper()
	s.Expect(os.WriteFile(file, config, 0o600)).To(Succeed())
	s.Expect(fleet.Component("ferry").Restart()).To(Succeed())
	s.Expect(fleet.AwaitFerry(s.ctx)).To(Succeed())
}
