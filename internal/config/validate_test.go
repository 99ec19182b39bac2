package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

const incremental = "dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental"

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want string // empty when it is fine
	}{
		"namespace":                 {"namespace: Upper", `namespace: Invalid value: "Upper"`},
		"port 0":                    {"webhook: {port: 0}", "webhook.port: Invalid value: 0: must be between 1 and 65535"},
		"port too large":            {"webhook: {port: 65536}", "webhook.port: Invalid value: 65536"},
		"largest port":              {"webhook: {port: 65535}", ""},
		"health off":                {`health: {healthProbeBindAddress: "0"}`, ""},
		"health without port":       {"health: {healthProbeBindAddress: localhost}", `health.healthProbeBindAddress: Invalid value: "localhost": must be host:port`},
		"health port too large":     {`health: {healthProbeBindAddress: ":70000"}`, "health.healthProbeBindAddress"},
		"metrics off":               {`metrics: {bindAddress: "0", secureServing: false}`, ""},
		"metrics without port":      {`metrics: {bindAddress: "::1", secureServing: false}`, "metrics.bindAddress: Invalid value"},
		"plain on 127.0.0.1":        {`metrics: {bindAddress: "127.0.0.1:0", secureServing: false}`, ""},
		"plain on ::1":              {`metrics: {bindAddress: "[::1]:9", secureServing: false}`, ""},
		"plain on localhost":        {`metrics: {bindAddress: "localhost:9", secureServing: false}`, ""},
		"plain on all":              {`metrics: {bindAddress: ":9", secureServing: false}`, `metrics.secureServing: Invalid value: false: plain HTTP is for loopback addresses only, and metrics.bindAddress is ":9"`},
		"plain on 0.0.0.0":          {`metrics: {bindAddress: "0.0.0.0:9", secureServing: false}`, "metrics.secureServing"},
		"plain on a name":           {`metrics: {bindAddress: "localhost.example.com:9", secureServing: false}`, "metrics.secureServing"},
		"plain by default address":  {"metrics: {secureServing: false}", "metrics.secureServing"},
		"Kueue's lease":             {"leaderElection: {resourceName: c1f6bfd2.kueue.x-k8s.io}", "leaderElection.resourceName: Invalid value: \"c1f6bfd2.kueue.x-k8s.io\": this is Kueue's lease"},
		"lease name":                {"leaderElection: {resourceName: a_b}", "leaderElection.resourceName"},
		"lease namespace":           {"leaderElection: {resourceNamespace: a.b}", "leaderElection.resourceNamespace"},
		"qps 0":                     {"clientConnection: {qps: 0}", "clientConnection.qps: Invalid value: 0: would be taken for 5"},
		"no limit":                  {"clientConnection: {qps: -1}", ""},
		"burst 0":                   {"clientConnection: {burst: 0}", "clientConnection.burst: Invalid value: 0"},
		"unknown framework":         {"integrations: {frameworks: [batch/jobs]}", `integrations.frameworks[0]: Unsupported value: "batch/jobs": supported values: "batch/job", "ray.io/rayjob"`},
		"framework twice":           {"integrations: {frameworks: [batch/job, batch/job]}", `integrations.frameworks[1]: Duplicate value: "batch/job"`},
		"gc off":                    {"multiKueue: {gcInterval: 0s}", ""},
		"gc negative":               {"multiKueue: {gcInterval: -1s}", `multiKueue.gcInterval: Invalid value: "-1s": must not be negative`},
		"lost at once":              {"multiKueue: {workerLostTimeout: 0s}", ""},
		"lost negative":             {"multiKueue: {workerLostTimeout: -1s}", `multiKueue.workerLostTimeout: Invalid value: "-1s": must not be negative`},
		"origin":                    {"multiKueue: {origin: a b}", `multiKueue.origin: Invalid value: "a b"`},
		"origin of 63":              {"multiKueue: {origin: " + strings.Repeat("x", 63) + "}", ""},
		"origin of 64":              {"multiKueue: {origin: " + strings.Repeat("x", 64) + "}", "multiKueue.origin"},
		"all at once":               {"multiKueue: {dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-all-at-once}", ""},
		"incremental":               {"multiKueue: {" + incremental + "}", ""},
		"external dispatcher":       {"multiKueue: {dispatcherName: example.com/cheapest}", ""},
		"misspelt dispatcher":       {"multiKueue: {dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-increment}", "multiKueue.dispatcherName: Unsupported value"},
		"dispatcher name":           {"multiKueue: {dispatcherName: a/b/c}", "multiKueue.dispatcherName: Invalid value"},
		"pace of another":           {"multiKueue: {incrementalDispatcherConfig: {stepSize: 1}}", "multiKueue.incrementalDispatcherConfig: Forbidden: only valid with dispatcherName"},
		"step 0":                    {"multiKueue: {" + incremental + ", incrementalDispatcherConfig: {stepSize: 0}}", "multiKueue.incrementalDispatcherConfig.stepSize: Invalid value: 0"},
		"round 0":                   {"multiKueue: {" + incremental + ", incrementalDispatcherConfig: {roundTimeout: 0s}}", "multiKueue.incrementalDispatcherConfig.roundTimeout"},
		"external framework":        {"multiKueue: {externalFrameworks: [{name: PipelineRun}]}", "multiKueue.externalFrameworks[0].name: Invalid value: \"PipelineRun\": must be Kind.version.group"},
		"external framework no one": {"multiKueue: {externalFrameworks: [{}]}", "multiKueue.externalFrameworks[0].name"},
		"external framework dots":   {"multiKueue: {externalFrameworks: [{name: ..}]}", "multiKueue.externalFrameworks[0].name"},
		"external framework twice":  {"multiKueue: {externalFrameworks: [{name: A.v1.b.c}, {name: A.v1.b.c}]}", "multiKueue.externalFrameworks[1].name: Duplicate value"},
		"external built-in":         {"multiKueue: {externalFrameworks: [{name: Job.v1.batch}, {name: RayJob.v1.ray.io}]}", ""},
		"external built-in twice":   {"multiKueue: {externalFrameworks: [{name: RayJob.v1.ray.io}, {name: RayJob.v1.ray.io}]}", "multiKueue.externalFrameworks[1].name: Duplicate value"},
		"external built-in default": {"multiKueue: {externalFrameworks: [{name: RayJob.v1.ray.io, managedBy: spec.managedBy, statusSubresource: true}]}", ""},
		"external built-in changed": {"multiKueue: {externalFrameworks: [{name: RayJob.v1.ray.io, drop: [spec.a]}]}", entry + `name: Invalid value: "RayJob.v1.ray.io": is built in, and how it is dispatched is fixed: leave the name alone here, or name ray.io/rayjob in integrations.frameworks`},
		"external, all of it":       {external("managedBy: spec.run.by, drop: [spec.ttl, 'metadata.labels[a.b/c]', data], flow: [spec.timeout], suspend: spec.status=Pending, statusSubresource: false, resource: as"), ""},
		"external by a label":       {external("managedBy: 'metadata.labels[a.b/c]'"), ""},
		"external by nothing":       {external("managedBy: none"), ""},
		"external by metadata":      {external("managedBy: metadata.name"), entry + `managedBy: Invalid value: "metadata.name": must lead below spec`},
		"external by a mark":        {external("managedBy: 'metadata.labels[kueue.x-k8s.io/queue-name]'"), entry + "managedBy"},
		"external by all of spec":   {external("managedBy: spec"), entry + "managedBy"},
		"external path dots":        {external("managedBy: spec..a"), entry + `managedBy: Invalid value: "spec..a": a field name is missing`},
		"external path brackets":    {external("drop: ['spec.a[b']"), entry + `drop[0]: Invalid value: "spec.a[b": a bracket is not closed`},
		"external path empty":       {external("drop: ['']"), entry + "drop[0]"},
		"external path run on":      {external("drop: ['spec.a[x]b']"), entry + `drop[0]: Invalid value: "spec.a[x]b": "b" cannot stand in a path`},
		"external path of element":  {external("managedBy: 'spec.containers[0].managedBy'"), entry + `managedBy: Invalid value: "spec.containers[0].managedBy": "0" is an element of a list, and those have no path`},
		"external path of elements": {external("drop: ['spec.a[*].b']"), entry + `drop[0]: Invalid value: "spec.a[*].b": "*" is an element of a list`},
		"external path of a number": {external("flow: [spec.a.0]"), entry + `flow[0]: Invalid value: "spec.a.0": "0" is an element of a list`},
		"external path of a slice":  {external("drop: ['spec.a[1:2]']"), entry + `drop[0]: Invalid value: "spec.a[1:2]": "1:2" is an element of a list`},
		"external path of a filter": {external("drop: ['spec.a[?(@.b)]']"), entry + `drop[0]: Invalid value: "spec.a[?(@.b)]": "?(@.b)" is an element of a list`},
		"external path in quotes":   {external(`drop: ["metadata.labels['a.b/c']"]`), entry + `drop[0]: Invalid value: "metadata.labels['a.b/c']": names in brackets have no quotes`},
		"external path from $":      {external("drop: [$.spec.a]"), entry + `drop[0]: Invalid value: "$.spec.a": a path starts without $`},
		"external path from a dot":  {external("drop: [.spec.a]"), entry + `drop[0]: Invalid value: ".spec.a": a field name is missing`},
		"external JSON pointer":     {external("drop: [/spec/a]"), entry + `drop[0]: Invalid value: "/spec/a": a field name is missing`},
		"external by no label":      {external("managedBy: 'metadata.labels[a b]'"), entry + "managedBy"},
		"external suspend empty":    {external("suspend: spec.suspend="), entry + `suspend: Invalid value: "spec.suspend": a text is missing after =: for the value true write the path alone`},
		"external suspend blank":    {external("suspend: 'spec.suspend= '"), entry + "suspend"},
		"external suspend true":     {external("suspend: spec.suspend=true"), entry + `suspend: Invalid value: "spec.suspend": would set a text`},
		"external suspend false":    {external("suspend: spec.active=False"), entry + "suspend"},
		"external suspend 0":        {external("suspend: spec.replicas=0"), entry + "suspend"},
		"external suspend spaced":   {external("suspend: spec.suspend = x"), entry + "suspend"},
		"external suspend by =":     {external("suspend: =x"), entry + "suspend"},
		"external drops status":     {external("drop: [status]"), entry + `drop[0]: Invalid value: "status": the status is never copied`},
		"external drops kind":       {external("drop: [kind]"), entry + `drop[0]: Invalid value: "kind": every object needs it`},
		"external drops the queue":  {external("drop: ['metadata.labels[kueue.x-k8s.io/queue-name]']"), entry + "drop[0]"},
		"external drops all":        {external("drop: [spec]"), entry + "drop[0]"},
		"external drops and flows":  {external("drop: [spec.a], flow: [spec.a.b]"), entry + `flow[0]: Invalid value: "spec.a.b": overlaps with multiKueue.externalFrameworks[0].drop[0]`},
		"external flows labels":     {external("flow: ['metadata.labels[a]']"), entry + "flow[0]"},
		"external flows managedBy":  {external("flow: [spec.managedBy]"), entry + "flow[0]"},
		"external suspends status":  {external("suspend: status.x"), entry + "suspend"},
		"external resource":         {external("resource: A/b"), entry + "resource"},
		"external versions":         {"multiKueue: {externalFrameworks: [{name: A.v1.b.c}, {name: A.v2.b.c}]}", "multiKueue.externalFrameworks[1].name: Duplicate value"},
		"external of Kueue's":       {"multiKueue: {externalFrameworks: [{name: Workload.v1beta2.kueue.x-k8s.io}]}", entry + "name: Invalid value"},
		"external of no group":      {"multiKueue: {externalFrameworks: [{name: Pod.v1}]}", entry + "name"},
		"plugin without a command":  {"multiKueue: {clusterProfile: {accessProviders: [{name: x, execConfig: {apiVersion: client.authentication.k8s.io/v1}}]}}", "multiKueue.clusterProfile.accessProviders[0].execConfig.command: Required value"},
		"plugin's version":          {"multiKueue: {clusterProfile: {credentialsProviders: [{name: x, execConfig: {command: c, apiVersion: v1}}]}}", "multiKueue.clusterProfile.credentialsProviders[0].execConfig.apiVersion: Unsupported value"},
		"plugin without a name":     {"multiKueue: {clusterProfile: {accessProviders: [{execConfig: {command: c, apiVersion: client.authentication.k8s.io/v1}}]}}", "multiKueue.clusterProfile.accessProviders[0].name: Required value"},
		"both kinds of providers":   {"multiKueue: {clusterProfile: {accessProviders: [{name: x}], credentialsProviders: [{name: x}]}}", "multiKueue.clusterProfile.credentialsProviders: Forbidden: it is the deprecated name"},
		"workers' qps":              {"workers: {clientConnection: {qps: 0}}", "workers.clientConnection.qps"},
		"request timeout":           {"workers: {requestTimeout: 0s}", `workers.requestTimeout: Invalid value: "0s": must be more than 0s`},
		"place timeout":             {"workers: {placeTimeout: -1s}", "workers.placeTimeout"},
		"probe interval":            {"workers: {probeInterval: 0s}", "workers.probeInterval"},
		"probe timeout":             {"workers: {probeTimeout: -1s}", "workers.probeTimeout"},
		"failure threshold":         {"workers: {failureThreshold: 0}", "workers.failureThreshold: Invalid value: 0"},
		"relative folder":           {"workers: {kubeConfigPathPrefix: kube}", "workers.kubeConfigPathPrefix"},
		"whole file system":         {"workers: {kubeConfigPathPrefix: /x/..}", "workers.kubeConfigPathPrefix"},
		"back-off from 0":           {"workers: {reconnectBackoff: {initial: 0s}}", "workers.reconnectBackoff.initial"},
		"back-off falling":          {"workers: {reconnectBackoff: {initial: 2m}}", `workers.reconnectBackoff.max: Invalid value: "1m0s": must not be below initial, which is 2m0s`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := mustLoad(t, header+test.file)
			c.SetDefaults()
			err := c.Validate(known)
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			var all utilerrors.Aggregate
			g.Expect(errors.As(err, &all)).To(BeTrue())
			g.Expect(all.Errors()).To(HaveLen(1), "one mistake, one error: %v", err)
			g.Expect(err.Error()).To(HavePrefix(test.want))
		})
	}
}

// TestValidateNamesWhatWasMeant: mistaken names are refused, with the right one wherever it can be known.
func TestValidateNamesWhatWasMeant(t *testing.T) {
	const builtIn = "; the kind is built in: name ray.io/rayjob in integrations.frameworks"
	for name, want := range map[string]string{
		"pipelineruns.tekton.dev":         "(a kind starts with a capital letter); did you mean PipelineRun.v1.tekton.dev?",
		"pipelinerun.v1.tekton.dev":       "did you mean PipelineRun.v1.tekton.dev?",
		"tekton.dev/v1/PipelineRun":       "did you mean PipelineRun.v1.tekton.dev?",
		"tekton.dev/v1, Kind=PipelineRun": "did you mean PipelineRun.v1.tekton.dev?",
		"PipelineRun":                     "must be Kind.version.group; did you mean PipelineRun.v1.tekton.dev?",
		"Workflow.argoproj.io":            "(a version looks like v1 or v1beta1); did you mean Workflow.v1alpha1.argoproj.io?",
		"workflows.argoproj.io":           "did you mean Workflow.v1alpha1.argoproj.io?",
		"Workflow.v1alpha1":               "did you mean Workflow.v1alpha1.argoproj.io?",
		"trainings.example.com":           "did you mean Training.v1.example.com?",
		"training.v2beta1.example.com":    "did you mean Training.v2beta1.example.com?",
		"Training.example.com":            "did you mean Training.v1.example.com?",
		"batches.example.com":             "did you mean Batch.v1.example.com?",
		"policies.example.com":            "did you mean Policy.v1.example.com?",
		"example.com/v1/Training":         "such as PipelineRun.v1.tekton.dev",
		"Training.1.example.com":          "(a version looks like v1 or v1beta1), such as",
		"Training.v0.example.com":         "(a version looks like v1 or v1beta1), such as",
		"Training.v1.example":             "(a group is a domain, such as tekton.dev)",
		"Training.v1.Example.com":         "(a group is a domain, such as tekton.dev)",
		"Training.v1.example.com ":        "(a group is a domain, such as tekton.dev)",
		"CronJob.v1.batch":                "(a group is a domain, such as tekton.dev)",
		"rayjobs.ray.io":                  builtIn,
		"rayjob.v1.ray.io":                builtIn,
		"RayJob.ray.io":                   builtIn,
		"ray.io/rayjob":                   builtIn,
		"":                                "must be Kind.version.group, such as PipelineRun.v1.tekton.dev",
		"s.s.s":                           "did you mean S.v1.s.s?",
		"...":                             "such as PipelineRun.v1.tekton.dev",
	} {
		g := NewWithT(t)
		c := &Configuration{MultiKueue: MultiKueue{ExternalFrameworks: []ExternalFramework{{Name: name}}}}
		c.SetDefaults()
		g.Expect(c.Validate(known)).To(MatchError(And(HavePrefix(entry+"name: Invalid value: "), ContainSubstring(": must be Kind.version.group"), ContainSubstring(want))), "%q", name)
	}
}

// entry is where the first external framework stands.
const entry = "multiKueue.externalFrameworks[0]."

func external(fields string) string {
	return "multiKueue: {externalFrameworks: [{name: A.v1.b.c, " + fields + "}]}"
}

func TestValidateNamesAllMistakesAtOnce(t *testing.T) {
	g := NewWithT(t)
	c := mustLoad(t, header+`
namespace: A
webhook: {port: 0}
metrics: {bindAddress: x}
integrations: {frameworks: [x]}
multiKueue: {gcInterval: -1s, workerLostTimeout: -1s, origin: "!", externalFrameworks: [{name: x, managedBy: x, drop: [y.., status]}]}
workers: {failureThreshold: 0, probeTimeout: 0s}
`)
	c.SetDefaults()
	var all utilerrors.Aggregate
	g.Expect(errors.As(c.Validate(known), &all)).To(BeTrue())
	g.Expect(all.Errors()).To(HaveLen(13))
}

func TestDefaultsThatFollowOtherFields(t *testing.T) {
	g := NewWithT(t)
	c := &Configuration{Namespace: "elsewhere", MultiKueue: MultiKueue{DispatcherName: DispatcherIncremental}}
	c.SetDefaults()
	g.Expect(c.LeaderElection.ResourceNamespace).To(Equal("elsewhere"))
	g.Expect(c.MultiKueue.IncrementalDispatcherConfig).To(Equal(&IncrementalDispatcherConfig{StepSize: new(int32(3)), RoundTimeout: duration(5 * time.Minute)}))
	g.Expect(c.MultiKueue.Origin).To(BeEmpty())
}
