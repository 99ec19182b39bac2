package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const kueueHeader = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"

const kueueFile = `
namespace: kueue-prod
health: {healthProbeBindAddress: ":1081", readinessEndpointName: ready}
metrics: {bindAddress: ":1443", enableClusterQueueResources: true}
webhook: {host: 10.0.0.1, port: 1944, certDir: /kueue-certs}
leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io, resourceNamespace: leases, leaseDuration: 20s}
controller: {groupKindConcurrency: {Job.batch: 5}}
clientConnection: {qps: 30, burst: 50}
waitForPodsReady: {timeout: 5m}
integrations: {frameworks: [batch/job, pod, kubeflow.org/mpijob], externalFrameworks: [Foo.v1.example.com]}
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
featureGates: {MultiKueue: false}
multiKueue:
  gcInterval: 2m
  origin: multikueue
  workerLostTimeout: 3m
  dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental
  incrementalDispatcherConfig: {stepSize: 2}
  externalFrameworks: [{name: PipelineRun.v1.tekton.dev}]
`

func TestLoadTakesKueuesConfiguration(t *testing.T) {
	g := NewWithT(t)
	c, notes, err := Load([]byte(kueueHeader+kueueFile), known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c).To(Equal(mustLoad(t, header+`
namespace: kueue-prod
health: {healthProbeBindAddress: ":1081"}
metrics: {bindAddress: ":1443"}
webhook: {host: 10.0.0.1, port: 1944, certDir: /kueue-certs}
leaderElection: {leaderElect: true, resourceNamespace: leases}
clientConnection: {qps: 30, burst: 50}
integrations: {frameworks: [batch/job]}
multiKueue:
  gcInterval: 2m
  origin: multikueue
  workerLostTimeout: 3m
  dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental
  incrementalDispatcherConfig: {stepSize: 2}
  externalFrameworks: [{name: PipelineRun.v1.tekton.dev}]
`)))
	c.SetDefaults()
	g.Expect(c.Validate(known)).To(Succeed())
	g.Expect(c.LeaderElection.ResourceName).To(Equal("ferry.ferry.dev"))
	g.Expect(c.MultiKueue.ExternalFrameworks).To(ConsistOf(And(
		HaveField("Name", "PipelineRun.v1.tekton.dev"), HaveField("ManagedBy", "spec.managedBy"), HaveField("StatusSubresource", HaveValue(BeTrue())))))

	g.Expect(notes).To(ConsistOf(
		HaveSuffix("are ignored: controller, fairSharing, featureGates, health.readinessEndpointName, integrations.externalFrameworks, "+
			"leaderElection.leaseDuration, metrics.enableClusterQueueResources, waitForPodsReady"),
		And(HavePrefix("integrations.frameworks"), ContainSubstring("pod, kubeflow.org/mpijob")),
		And(HavePrefix("leaderElection.resourceName"), ContainSubstring("ferry.ferry.dev")),
		And(HavePrefix("namespace"), ContainSubstring("kueue-prod")),
		HavePrefix("multiKueue.origin"),
	))
}

func TestLoadOfKueuesEmptyConfiguration(t *testing.T) {
	g := NewWithT(t)
	for _, version := range []string{"v1beta1", "v1beta2"} {
		c, notes, err := Load([]byte("apiVersion: config.kueue.x-k8s.io/"+version+"\nkind: Configuration\n"), known)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(notes).To(ConsistOf(HavePrefix("namespace is not set"), HavePrefix("featureGates.MultiKueue")))
		c.SetDefaults()
		want := &Configuration{}
		want.SetDefaults()
		g.Expect(c).To(Equal(want))
	}
}

func TestLoadNeverTakesALeaseFromKueuesFile(t *testing.T) {
	g := NewWithT(t)
	c, notes, err := Load([]byte(kueueHeader+"leaderElection: {resourceName: team-a-kueue}"), known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(ContainElement(ContainSubstring("team-a-kueue is Kueue's lease")))
	c.SetDefaults()
	g.Expect(c.LeaderElection.ResourceName).To(Equal(DefaultLease))
}

func TestLoadRefusesOfKueues(t *testing.T) {
	for name, test := range map[string]struct{ file, want string }{
		"fields it does not have":      {kueueHeader + "multiKueue: {gcIntervall: 1m}", "multiKueue.gcIntervall: "},
		"fields that are Ferry's":      {kueueHeader + "workers: {}", "workers: "},
		"wrong values":                 {kueueHeader + "fairSharing: 3", "fairSharing: "},
		"durations without a unit":     {kueueHeader + "multiKueue: {workerLostTimeout: 3}", "multiKueue.workerLostTimeout: Invalid value: 3"},
		"only kinds not dispatched":    {kueueHeader + "integrations: {frameworks: [pod]}", "none of pod yet: name one of batch/job, ray.io/rayjob"},
		"v1beta2's fields in v1beta1":  {"apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nvisibilityServer: {}", "visibilityServer: "},
		"v1beta1's fields in v1beta2":  {kueueHeader + "queueVisibility: {}", "queueVisibility: "},
		"versions that do not exist":   {"apiVersion: config.kueue.x-k8s.io/v1\nkind: Configuration\n", `"config.kueue.x-k8s.io/v1" is not known`},
		"kinds that are not this kind": {"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Config\n", `kind "Config"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, _, err := Load([]byte(test.file), known)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestKueuesClusterProfileIsTaken(t *testing.T) {
	g := NewWithT(t)
	c, notes, err := Load([]byte(kueueHeader+`
multiKueue:
  clusterProfile:
    accessProviders: [{name: p, execConfig: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, env: [{name: A, value: b}]}}]
`), known)
	g.Expect(err).NotTo(HaveOccurred())
	c.SetDefaults()
	g.Expect(c.Validate(known)).To(Succeed())
	g.Expect(c.MultiKueue.ClusterProfile.Providers()).To(Equal([]AccessProvider{{
		Name: "p", ExecConfig: ExecConfig{Command: "c", APIVersion: "client.authentication.k8s.io/v1", Env: []ExecEnv{{"A", "b"}}},
	}}))
	g.Expect(notes).To(ContainElement(ContainSubstring("the credential plugins run in Ferry's container")))
}

// The file that Kueue's own installation ships is what most users have.
func TestLoadTakesTheConfigurationThatKueueShips(t *testing.T) {
	g := NewWithT(t)
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue").Output()
	g.Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config/components/manager/controller_manager_config.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	c, notes, err := Load(data, known)
	g.Expect(err).NotTo(HaveOccurred())
	c.SetDefaults()
	g.Expect(c.Validate(known)).To(Succeed())
	g.Expect(c.Integrations.Frameworks).To(Equal([]string{"batch/job", "ray.io/rayjob"}))
	g.Expect(notes).To(ContainElement(ContainSubstring("leaderworkerset.x-k8s.io/leaderworkerset")))
}

func mustLoad(t *testing.T, file string) *Configuration {
	t.Helper()
	c, notes, err := Load([]byte(file), known)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(notes).To(BeEmpty())
	return c
}

func mustMarshal(t interface{ Fatalf(string, ...any) }, c *Configuration) []byte {
	data, err := yaml.Marshal(c)
	if err != nil {
		t.Fatalf("marshalling: %v", err)
	}
	return data
}

func TestKueuesGateTurnsOrchestratedPreemptionOn(t *testing.T) {
	for gates, want := range map[string]bool{"": false, "featureGates: {MultiKueueOrchestratedPreemption: true}\n": true, "featureGates: {MultiKueueOrchestratedPreemption: false}\n": false} {
		g := NewWithT(t)
		c, _, err := Load([]byte("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"+gates), known)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.MultiKueue.OrchestratedPreemption.Enabled).To(Equal(want), gates)
	}
}
