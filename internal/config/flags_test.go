package config

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func parse(t *testing.T, args ...string) *Flags {
	t.Helper()
	f, set := &Flags{}, pflag.NewFlagSet("ferry", pflag.ContinueOnError)
	f.AddTo(set)
	NewWithT(t).Expect(set.Parse(args)).To(Succeed())
	return f
}

func TestFlagsNotGivenChangeNothing(t *testing.T) {
	g := NewWithT(t)
	c, want := mustLoad(t, header+"namespace: north\nwebhook: {host: h, port: 1}"), mustLoad(t, header+"namespace: north\nwebhook: {host: h, port: 1}")
	f := parse(t)
	f.Apply(c)
	g.Expect(c).To(Equal(want))
	g.Expect(f.LogFormat).To(Equal(LogJSON))
}

func TestFlagsOverrideTheFile(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "config.yaml")
	g.Expect(os.WriteFile(file, []byte(header+`
namespace: north
webhook: {host: h, port: 1, certDir: /c}
health: {healthProbeBindAddress: ":1"}
metrics: {bindAddress: ":2"}
`), 0o600)).To(Succeed())
	f := parse(t, "--config", file, "--kubeconfig", "k", "--namespace=m", "--webhook-host=", "--webhook-port=2", "--webhook-cert-dir=/d",
		"--health-probe-bind-address=:3", "--metrics-bind-address=127.0.0.1:4", "--metrics-secure=false", "--leader-elect=false", "-v2", "--log-format=text")
	c, notes, err := f.Configuration(known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(BeEmpty())
	g.Expect(c.Namespace).To(Equal("m"))
	g.Expect(c.LeaderElection).To(Equal(LeaderElection{LeaderElect: new(false), ResourceName: DefaultLease, ResourceNamespace: "m"}))
	g.Expect(c.Webhook).To(Equal(Webhook{Host: "", Port: new(2), CertDir: "/d"}))
	g.Expect(c.Health.HealthProbeBindAddress).To(Equal(":3"))
	g.Expect(c.Metrics).To(Equal(Metrics{BindAddress: "127.0.0.1:4", SecureServing: new(false)}))
	g.Expect(f).To(HaveValue(And(HaveField("Kubeconfig", "k"), HaveField("Verbosity", 2), HaveField("LogFormat", LogText))))
}

func TestWithoutAFileTheDefaultsHold(t *testing.T) {
	g := NewWithT(t)
	c, _, err := parse(t).Configuration(known)
	g.Expect(err).NotTo(HaveOccurred())
	want := &Configuration{}
	want.SetDefaults()
	want.Integrations.Frameworks = known
	g.Expect(c).To(Equal(want))
}

// TestBuiltInKindsAmongTheExternal are turned on, in both forms of the file, as Kueue allows to name those that are off.
func TestBuiltInKindsAmongTheExternal(t *testing.T) {
	all := []string{"batch/job", "ray.io/rayjob", "pod", "deployment"}
	const external = "multiKueue: {externalFrameworks: [{name: RayJob.v1.ray.io}, {name: PipelineRun.v1.tekton.dev}, {name: Job.v1.batch}, {name: Deployment.v1.apps}, {name: Pod.v1.}]}\n"
	for name, file := range map[string]string{
		"Ferry's": header + "integrations: {frameworks: [batch/job]}\n" + external,
		"Kueue's": kueueHeader + "integrations: {frameworks: [batch/job]}\n" + external,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "config.yaml")
			g.Expect(os.WriteFile(path, []byte(file), 0o600)).To(Succeed())
			c, notes, err := parse(t, "--config", path).Configuration(all)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Integrations.Frameworks).To(Equal([]string{"batch/job", "ray.io/rayjob", "deployment", "pod"}))
			g.Expect(c.MultiKueue.ExternalFrameworks).To(ConsistOf(HaveField("Name", "PipelineRun.v1.tekton.dev")))
			g.Expect(notes).To(ContainElement("multiKueue.externalFrameworks: RayJob.v1.ray.io is built in: taken for ray.io/rayjob in integrations.frameworks"))
		})
	}
}

func TestFlagsThatAreWrong(t *testing.T) {
	g := NewWithT(t)
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	g.Expect(os.WriteFile(empty, nil, 0o600)).To(Succeed())
	for want, args := range map[string][]string{
		"--config is empty": {"--config="},
		"no such file":      {"--config", empty + ".not"},
		empty + ": reading the configuration: it is": {"--config", empty},
		"command line: webhook.port: Invalid value":  {"--webhook-port=0"},
		"metrics.secureServing":                      {"--metrics-secure=false"},
	} {
		_, _, err := parse(t, args...).Configuration(known)
		g.Expect(err).To(MatchError(ContainSubstring(want)))
	}
	f, set := &Flags{}, pflag.NewFlagSet("ferry", pflag.ContinueOnError)
	f.AddTo(set)
	g.Expect(set.Parse([]string{"--log-format=xml"})).To(MatchError(ContainSubstring("use json or text")))
}
