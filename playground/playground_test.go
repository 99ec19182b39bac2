package playground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/pki"
	"ferry.dev/ferry/playground/process"
)

// TestOneAtATime: who is to be alone waits until the other has stopped, and no longer than it is told.
func TestOneAtATime(t *testing.T) {
	g := NewWithT(t)
	place := fmt.Sprintf("test-%d", os.Getpid())
	first, second := newPlayground(t.TempDir(), Options{Name: "first"}), newPlayground(t.TempDir(), Options{Name: "second"})
	g.Expect(first.awaitTurn(t.Context(), place)).To(Succeed())
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(second.awaitTurn(impatient, place)).To(MatchError(context.Canceled))
	waited := make(chan error, 1)
	go func() { waited <- second.awaitTurn(t.Context(), place) }()
	g.Expect(first.Stop()).To(Succeed())
	g.Eventually(waited).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(second.Stop()).To(Succeed())
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"the zero value is fine": {},
		"capitals":               {o: Options{Name: "Demo"}, want: "no name"},
		"a path":                 {o: Options{Name: "../demo"}, want: "no name"},
		"a folder of ours":       {o: Options{Name: "bin"}, want: "no name"},
		"negative workers":       {o: Options{Workers: -1}, want: "negative"},
		"an unknown operator":    {o: Options{Operators: []string{"spark"}}, want: "there are jobset"},
		"an unknown one's CRDs":  {o: Options{CRDsOf: []string{"spark"}}, want: "there are jobset"},
		"two dispatchers":        {o: Options{Ferry: true, StockMultiKueue: true}, want: "not both"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := c.o.withDefaults()
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestOperatorsTurnTheirFrameworksOn(t *testing.T) {
	g := NewWithT(t)
	o, err := Options{Operators: []string{"jobset"}, CRDsOf: []string{"mpi-operator"}}.withDefaults()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Frameworks).To(Equal([]string{"batch/job", "jobset.x-k8s.io/jobset", "kubeflow.org/mpijob"}))
}

func TestStagesAreYAML(t *testing.T) {
	g := NewWithT(t)
	data, err := renderStages(1500 * time.Millisecond)
	g.Expect(err).NotTo(HaveOccurred())
	stages, err := manifest.Parse(data)
	g.Expect(err).NotTo(HaveOccurred())
	delays := map[string]any{}
	for _, s := range stages {
		g.Expect(s.GetKind()).To(Equal("Stage"))
		delay, _, err := unstructured.NestedFieldNoCopy(s.Object, "spec", "delay", "durationMilliseconds")
		g.Expect(err).NotTo(HaveOccurred())
		delays[s.GetName()] = delay
	}
	g.Expect(delays).To(HaveKeyWithValue("pod-succeeds", BeEquivalentTo(1500)))
	g.Expect(delays).To(HaveKeyWithValue("pod-fails", BeEquivalentTo(1500)))
	g.Expect(delays).To(HaveKeyWithValue("pod-starts", BeNil()))
}

func TestFerryConfigIsFilledIn(t *testing.T) {
	g := NewWithT(t)
	addresses := FerryAddresses{Namespace: "ferry-system", WebhookHost: "127.0.0.1", WebhookPort: 9443, Frameworks: []string{"batch/job", "pod"}}
	data, err := fillFerryConfig(DefaultFerryConfig+"  probeInterval: 1s\nmultiKueue:\n  workerLostTimeout: 5s\n", addresses)
	g.Expect(err).NotTo(HaveOccurred())
	var config map[string]any
	g.Expect(yaml.UnmarshalStrict(data, &config)).To(Succeed())
	g.Expect(config["integrations"]).To(Equal(map[string]any{"frameworks": []any{"batch/job", "pod"}}))
	g.Expect(config["workers"]).To(HaveKeyWithValue("probeInterval", "1s"))

	_, err = fillFerryConfig("{{.NoSuchField}}", addresses)
	g.Expect(err).To(MatchError(ContainSubstring("NoSuchField")))
}

func TestEachReturnsTheFirstFailureAndCancelsTheOthers(t *testing.T) {
	g := NewWithT(t)
	broken := errors.New("broken")
	err := each(context.Background(), []bool{true, false}, func(ctx context.Context, fails bool) error {
		if fails {
			return broken
		}
		<-ctx.Done() // else this test hangs
		return ctx.Err()
	})
	g.Expect(err).To(MatchError(broken))
	g.Expect(each(context.Background(), []int{1, 2}, func(context.Context, int) error { return nil })).To(Succeed())
}

func TestAwaitEndsWithTheProcessItNeeds(t *testing.T) {
	g := NewWithT(t)
	p := process.New(process.Spec{
		Name: "w1/kueue", Path: "/bin/sh", Args: []string{"-c", "echo no certificate; exit 1"}, Log: filepath.Join(t.TempDir(), "log"),
	})
	g.Expect(p.Start()).To(Succeed())
	err := await(context.Background(), "w1/kueue", func(context.Context) error { return errors.New("refused") }, p)
	g.Expect(err).To(MatchError(And(ContainSubstring("w1/kueue ended by itself"), ContainSubstring("no certificate"))))
}

func TestQuotasOfQueues(t *testing.T) {
	g := NewWithT(t)
	p := &Playground{workers: []*Cluster{{Name: "w1"}, {Name: "w2"}}}
	o := QueueOptions{Manager: Quota{CPU: "8"}, PerWorker: map[string]Quota{"w2": {CPU: "2"}}}.withDefaults(p)
	g.Expect(o.Workers).To(Equal([]string{"w1", "w2"}))
	cpu := func(cluster string) string {
		return o.clusterQueue(&Cluster{Name: cluster}).Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.String()
	}
	g.Expect([]string{cpu("manager"), cpu("w1"), cpu("w2")}).To(Equal([]string{"8", "8", "2"}))

	manager := o.clusterQueue(&Cluster{Name: "manager"})
	g.Expect(manager.Spec.AdmissionChecksStrategy.AdmissionChecks).To(Equal([]kueue.AdmissionCheckStrategyRule{{Name: "queue"}}))
}

func TestTheWebhooksOfJobsSpareSystemNamespaces(t *testing.T) {
	g := NewWithT(t)
	hook := func(group string) map[string]any {
		h := map[string]any{"rules": []any{map[string]any{"apiGroups": []any{group}}}}
		g.Expect(spareSystemNamespaces(h)).To(BeTrue())
		return h
	}
	g.Expect(hook("batch")).To(HaveKey("namespaceSelector"))
	g.Expect(hook("kueue.x-k8s.io")).NotTo(HaveKey("namespaceSelector"))
}

func TestAStateFolderIsClaimedOnce(t *testing.T) {
	g := NewWithT(t)
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	one, two := newPlayground(root, Options{Name: "x"}), newPlayground(root, Options{Name: "x"})
	rest := filepath.Join(one.Dir(), "w1", "audit.log")
	g.Expect(os.MkdirAll(filepath.Dir(rest), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(rest, nil, 0o600)).To(Succeed())

	g.Expect(one.claimState()).To(Succeed())
	g.Expect(rest).NotTo(BeAnExistingFile(), "a crash left it")
	g.Expect(two.claimState()).To(MatchError(ContainSubstring("runs already")))
	g.Expect(one.Stop()).To(Succeed())
	g.Expect(one.Dir()).NotTo(BeADirectory())
	g.Expect(two.claimState()).To(Succeed())
	g.Expect(two.Stop()).To(Succeed())
}

func TestInsistRepeatsUntilItIsAnswered(t *testing.T) {
	g := NewWithT(t)
	late := []error{
		apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0),
		apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
		apierrors.NewTooManyRequests("later", 0),
		apierrors.NewServiceUnavailable("starting"),
		context.DeadlineExceeded,
		syscall.ECONNREFUSED,
	}
	tries := 0
	g.Expect(insist(t.Context(), "x", func(context.Context) error {
		if tries++; tries <= len(late) {
			return late[tries-1]
		}
		return nil
	})).To(Succeed())
	g.Expect(tries).To(Equal(len(late) + 1))
}

func TestInsistEndsWhenRefused(t *testing.T) {
	for _, refusal := range []error{
		apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, "n", nil), apierrors.NewBadRequest("what?"),
		apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("no")), apierrors.NewUnauthorized("who?"),
	} {
		g, tries := NewWithT(t), 0
		err := insist(t.Context(), "make n", func(context.Context) error { tries++; return refusal })
		g.Expect(err).To(MatchError(And(HavePrefix("make n: "), ContainSubstring(refusal.Error()))))
		g.Expect(tries).To(Equal(1))
	}
}

// TestOnlyKindsWithConversionAskForIt: an API server that asks Kueue to convert a kind of which it converts none refuses
// the kind's other versions, and Kueue's kustomization leaves that patch out.
func TestOnlyKindsWithConversionAskForIt(t *testing.T) {
	g := NewWithT(t)
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	g.Expect(err).NotTo(HaveOccurred())
	c := &Cluster{p: &Playground{kueueDir: strings.TrimSpace(string(folder))}, ca: &pki.CA{}}
	crds, err := c.kueueCRDs()
	g.Expect(err).NotTo(HaveOccurred())
	asks := map[string]bool{}
	for _, crd := range crds {
		_, asks[crd.GetName()], err = unstructured.NestedMap(crd.Object, "spec", "conversion")
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(asks).To(And(HaveKeyWithValue("resourceflavors.kueue.x-k8s.io", false), HaveKeyWithValue("admissionchecks.kueue.x-k8s.io", false)))
	for _, plural := range []string{"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"} {
		g.Expect(asks).To(HaveKeyWithValue(plural+".kueue.x-k8s.io", true))
	}
}

func TestQueuesAreCheckedBeforeAnyIsMade(t *testing.T) {
	p := &Playground{manager: &Cluster{Name: ManagerName}, workers: []*Cluster{{Name: "w1"}}}
	for want, o := range map[string]QueueOptions{
		`quota of w1: "8x" is no amount`:   {Worker: Quota{CPU: "8x"}},
		`quota of manager: "-1" is no`:     {Manager: Quota{Memory: "-1"}},
		`quota of w1: "many" is no amount`: {PerWorker: map[string]Quota{"w1": {CPU: "many"}}},
		`namespace "a.b"`:                  {Namespace: "a.b"},
		`queue "A"`:                        {LocalQueue: "A"},
	} {
		NewWithT(t).Expect(p.InstallQueues(t.Context(), o)).To(MatchError(ContainSubstring(want)))
	}
}
