// Package takeover_test moves jobs of every kind from stock MultiKueue to Ferry and back, on real clusters of its own.
package takeover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/operator"
	"ferry.dev/ferry/test/customjobs"
)

const (
	// soon bounds every wait, for machines that do other work too.
	soon = 3 * time.Minute
	// longer than the test is how long jobs run that nobody hurries.
	longer = time.Hour
	// custom is the custom kind, as both configurations name it.
	custom = "PipelineRun.v1.tekton.dev"
)

// ferryConfig has the origin that MultiKueue's copies carry.
const ferryConfig = playground.DefaultFerryConfig + `  probeInterval: 1s
  probeTimeout: 5s
  reconnectBackoff: {initial: 250ms, max: 1s}
leaderElection:
  leaderElect: false
multiKueue:
  origin: multikueue
  externalFrameworks:
  - name: ` + custom + `
    suspend: spec.status=PipelineRunPending
`

// stage is the fleet.
type stage struct {
	*WithT
	t       *testing.T
	ctx     context.Context
	fleet   *playground.Playground
	manager client.Client
	// kinds are those of what samples make on workers.
	kinds []schema.GroupVersionKind
}

// TestTakeOver: what stock MultiKueue dispatched, of each kind, goes on under Ferry, and what Ferry dispatched under
// MultiKueue. What runs is not made anew, and ends where it ran; what waits keeps its offers.
func TestTakeOver(t *testing.T) {
	s := newStage(t)
	dispatched := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.refused })
	refused := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return !s.refused })
	first := s.submit("first", plenty, dispatched)
	second := s.submit("second", nothing, samples)
	refusedOnes := s.submit("refused", plenty, refused)
	first.awaitRunning()
	second.awaitOffers()
	s.Expect(refusedOnes.onWorkers(s)).To(BeEmpty(), "what stock MultiKueue does not dispatch")

	t.Log("to Ferry")
	s.Expect(s.fence()).To(Succeed())
	s.Expect(s.fleet.ToFerry(s.ctx)).To(Succeed())
	s.Expect(s.fleet.GrantByConfig(s.ctx)).To(Succeed())
	first.awaitAdopted()
	second.awaitAdopted()
	first.expectUndisturbed()
	second.expectOffers()
	refusedOnes.awaitRunning()
	first.end()
	second.release()
	second.awaitRunning()
	second.expectSameOffers()
	third := s.submit("third", nothing, dispatched)
	third.awaitOffers()

	t.Log("and back")
	s.Expect(s.fleet.ToMultiKueue(s.ctx)).To(Succeed())
	s.Expect(s.ungate(third.namespace)).To(Succeed())
	second.expectUndisturbed()
	third.expectOffers()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	s := &stage{WithT: NewWithT(t), t: t, ctx: t.Context()}
	crd, err := customjobs.PipelineRun.Definition(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	data, err := yaml.Marshal(crd)
	s.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "crd.yaml")
	s.Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
	s.fleet, err = playground.Start(s.ctx, playground.Options{
		Name: fmt.Sprintf("takeover-%d", os.Getpid()), Workers: 2, NodesPerWorker: 1, Alone: true,
		StockMultiKueue: true, MultiKueueFrameworks: []string{custom},
		FerryConfig: ferryConfig, FerryArgs: []string{"--v=2", "--log-format=text"},
		Frameworks: []string{operator.All}, Operators: []string{operator.All}, CRDsOf: []string{operator.All}, CRDs: []string{file},
		JobRunsFor: longer, Progress: os.Stderr, Keep: os.Getenv("FERRY_E2E_KEEP") != "",
	})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { s.Expect(s.fleet.Stop()).To(Succeed()) })
	s.manager = s.fleet.Manager().Client()
	s.kinds, err = kindsOf(samples)
	s.Expect(err).NotTo(HaveOccurred())
	for _, c := range s.fleet.Clusters() {
		o, err := customjobs.Start(c.RESTConfig(), customjobs.PipelineRun, corev1.NamespaceAll)
		s.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { s.Expect(o.Stop()).To(Succeed()) })
	}
	return s
}

// fence is what docs/configuration.md tells administrators to do: no node of the manager fits what MultiKueue dispatched.
func (s *stage) fence() error {
	return s.patchPods(`{"metadata": {"labels": {"ferry.dev/dispatched": "true"}}, "spec": {"nodeSelector": {"ferry.dev/dispatched": "elsewhere"}}}`,
		client.MatchingLabels{"kueue.x-k8s.io/managed": "true"})
}

// ungate is what docs/configuration.md tells administrators to do on the way back: what waits goes to workers without Ferry's gate.
func (s *stage) ungate(namespace string) error {
	return s.patchPods(`{"spec": {"schedulingGates": [{"name": "ferry.dev/dispatched", "$patch": "delete"}]}}`,
		client.InNamespace(namespace), client.HasLabels{"ferry.dev/dispatched"})
}

func (s *stage) patchPods(patch string, which ...client.ListOption) error {
	pods := &corev1.PodList{}
	if err := s.manager.List(s.ctx, pods, which...); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := s.manager.Patch(s.ctx, &pods.Items[i], client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
			return fmt.Errorf("patch %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}
