package config

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var known = []string{"batch/job", "ray.io/rayjob"}

const header = "apiVersion: config.ferry.dev/v1alpha1\nkind: Configuration\n"

func TestLoadReadsEveryField(t *testing.T) {
	g := NewWithT(t)
	c, notes, err := Load([]byte(header+`
namespace: ferry-test
webhook: {host: 127.0.0.1, port: 9444, certDir: /certs}
health: {healthProbeBindAddress: "127.0.0.1:1"}
metrics: {bindAddress: "127.0.0.1:2", secureServing: false}
leaderElection: {leaderElect: false, resourceName: lease, resourceNamespace: elsewhere}
clientConnection: {qps: 1.5, burst: 2}
integrations: {frameworks: [ray.io/rayjob, batch/job]}
multiKueue:
  gcInterval: 0s
  origin: east
  drain: {concurrency: 2}
  bestDispatcherConfig: {nominate: 2, after: 20s, weights: {fits: 1, free: 2, preferred: 3, ranThere: 4}}
  workerLostTimeout: 90s
  startTimeout: 2m
  withdrawTimeout: 10m
  objectRetentionPolicies: {remoteObjects: {afterFinished: 1h}}
  orchestratedPreemption: {enabled: true, timeout: 7m}
  dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental
  incrementalDispatcherConfig: {stepSize: 1, roundTimeout: 1m}
  externalFrameworks: [{name: PipelineRun.v1.tekton.dev}]
workers:
  clientConnection: {qps: -1, burst: 7}
  requestTimeout: 1s
  placeTimeout: 20s
  probeInterval: 2s
  probeTimeout: 3s
  failureThreshold: 4
  kubeConfigPathPrefix: /kubeconfigs
  reconnectBackoff: {initial: 5s, max: 6s}
  allowInsecureKubeConfigs: true
`), known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(BeEmpty())
	before := *c
	c.SetDefaults()
	g.Expect(*c).To(Equal(before), "a default replaced what the file says")
	g.Expect(c.Validate(known)).To(Succeed())
	g.Expect(c.Webhook).To(Equal(Webhook{Host: "127.0.0.1", Port: new(9444), CertDir: "/certs"}))
	g.Expect(c.LeaderElection).To(Equal(LeaderElection{LeaderElect: new(false), ResourceName: "lease", ResourceNamespace: "elsewhere"}))
	g.Expect(c.MultiKueue.GCInterval).To(Equal(duration(0)))
	g.Expect(c.MultiKueue.IncrementalDispatcherConfig).To(Equal(&IncrementalDispatcherConfig{StepSize: new(int32(1)), RoundTimeout: duration(time.Minute)}))
	g.Expect(c.MultiKueue.ExternalFrameworks).To(ConsistOf(ExternalFramework{Name: "PipelineRun.v1.tekton.dev", ManagedBy: "spec.managedBy", StatusSubresource: new(true)}))
	g.Expect(c.Workers).To(Equal(Workers{
		ClientConnection: ClientConnection{QPS: new(float32(-1)), Burst: new(int32(7))},
		RequestTimeout:   duration(time.Second), PlaceTimeout: duration(20 * time.Second), ProbeInterval: duration(2 * time.Second), ProbeTimeout: duration(3 * time.Second),
		FailureThreshold: new(int32(4)), KubeConfigPathPrefix: "/kubeconfigs",
		ReconnectBackoff:         ReconnectBackoff{Initial: duration(5 * time.Second), Max: duration(6 * time.Second)},
		AllowInsecureKubeConfigs: true,
	}))
}

func TestLoadOfNothingSetIsTheDefault(t *testing.T) {
	g := NewWithT(t)
	c, _, err := Load([]byte("# a comment first\n---\n"+header+"workers:\nmultiKueue: null\n"), known)
	g.Expect(err).NotTo(HaveOccurred())
	c.SetDefaults()
	want := &Configuration{}
	want.SetDefaults()
	g.Expect(c).To(Equal(want))
	g.Expect(c.Validate(known)).To(Succeed())
}

func TestLoadRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"nothing":         {"", []string{"it is empty", APIVersion}},
		"blanks":          {" \n\n", []string{"it is empty"}},
		"comments":        {"# nothing\n---\n# here\n", []string{"it is empty"}},
		"null":            {"null", []string{"it is empty"}},
		"a list":          {"[1, 2]", []string{"must be a mapping"}},
		"a word":          {"hello", []string{"must be a mapping"}},
		"no YAML":         {"a: b: c", []string{"not YAML"}},
		"a key twice":     {header + "namespace: a\nnamespace: b\n", []string{`"namespace" already set`}},
		"two documents":   {header + "---\n" + header, []string{"more than one YAML document"}},
		"no apiVersion":   {"kind: Configuration", []string{`apiVersion ""`, APIVersion, "config.kueue.x-k8s.io/v1beta2"}},
		"another version": {"apiVersion: config.ferry.dev/v2\nkind: Configuration", []string{`"config.ferry.dev/v2"`, APIVersion}},
		"another kind":    {"apiVersion: v1\nkind: ConfigMap", []string{`kind "ConfigMap"`, APIVersion, "kind Configuration"}},
		"an odd kind":     {"apiVersion: 1\nkind: [x]", []string{`kind ""`}},
		"unknown section": {header + "fairSharing: {}", []string{"fairSharing: ", "unknown field", "multiKueue"}},
		"unknown field":   {header + "multiKueue: {gcIntervall: 1m}", []string{"multiKueue.gcIntervall: ", "unknown field", "gcInterval, "}},
		"wrong case":      {header + "multiKueue: {gcinterval: 1m}", []string{"multiKueue.gcinterval: ", "unknown field"}},
		"in a list":       {header + "multiKueue: {externalFrameworks: [{nam: x}]}", []string{"multiKueue.externalFrameworks[0].nam: ", "unknown field"}},
		"no duration":     {header + "workers: {probeInterval: soon}", []string{`workers.probeInterval: Invalid value: "soon"`, "duration with a unit"}},
		"no unit":         {header + "workers: {probeInterval: 5}", []string{"workers.probeInterval: Invalid value: 5", "duration with a unit"}},
		"number for text": {header + "metrics: {bindAddress: 0}", []string{"metrics.bindAddress: Invalid value: 0", "quotes"}},
		"text for number": {header + "webhook: {port: https}", []string{`webhook.port: Invalid value: "https"`, "int"}},
		"too large":       {header + "clientConnection: {burst: 9999999999}", []string{"clientConnection.burst: Invalid value: 9999999999", "int32"}},
		"text for truth":  {header + "leaderElection: {leaderElect: perhaps}", []string{"leaderElection.leaderElect", "true or false"}},
		"text for list":   {header + "integrations: {frameworks: batch/job}", []string{"integrations.frameworks", "must be a list"}},
		"text for map":    {header + "workers: many", []string{"workers: ", "must be a mapping"}},
		"all at once": {header + "a: 1\nb: 2\nworkers: {probeInterval: x, probeTimeout: y}",
			[]string{"a: ", "b: ", "workers.probeInterval: ", "workers.probeTimeout: "}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, _, err := Load([]byte(test.file), known)
			g.Expect(err).To(HaveOccurred())
			g.Expect(c).To(BeNil())
			for _, part := range test.want {
				g.Expect(err.Error()).To(ContainSubstring(part))
			}
		})
	}
}

func TestLoadReadsJSON(t *testing.T) {
	g := NewWithT(t)
	c, _, err := Load([]byte(`{"apiVersion":"config.ferry.dev/v1alpha1","kind":"Configuration","namespace":"north"}`), known)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Namespace).To(Equal("north"))
}

func TestLoadTakesLongLines(t *testing.T) {
	g := NewWithT(t)
	_, _, err := Load([]byte(header+"# "+strings.Repeat("x", 1<<20)+"\n"), known)
	g.Expect(err).NotTo(HaveOccurred())
}
