// Package config is the config file: its types, defaults and validation, and the command line flags that override it.
package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a file of Ferry's own says about itself.
const (
	APIVersion = "config.ferry.dev/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is everything an operator can set. Names follow Kueue's Configuration where both have a setting.
// A nil pointer or an empty string means "not set"; SetDefaults leaves none of them but those documented as optional.
//
// The comment above each field is its text in docs/configuration.md: `go test ./internal/config -update` rewrites that.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// Namespace of Ferry on the manager: it reads the kubeconfig Secrets of the workers there, and nowhere else.
	Namespace string `json:"namespace"`
	// Where the admission webhooks are served.
	Webhook Webhook `json:"webhook"`
	// Where liveness (`/healthz`) and readiness (`/readyz`) are served.
	Health Health `json:"health"`
	// Where Prometheus metrics (`/metrics`) are served.
	Metrics Metrics `json:"metrics"`
	// One Ferry dispatches, the others stand by.
	LeaderElection LeaderElection `json:"leaderElection"`
	// Rate limit of the client for the manager.
	ClientConnection ClientConnection `json:"clientConnection"`
	// Which job kinds Ferry dispatches.
	Integrations Integrations `json:"integrations"`
	// How jobs are dispatched.
	MultiKueue MultiKueue `json:"multiKueue"`
	// How Ferry talks to the workers.
	Workers Workers `json:"workers"`
}

// Webhook says where the admission webhooks are served.
type Webhook struct {
	// Address to listen on; empty for all.
	Host string `json:"host"`
	// Port to listen on, 1 to 65535.
	Port *int `json:"port"`
	// Folder with `tls.crt` and `tls.key`; replaced files are picked up without a restart.
	CertDir string `json:"certDir"`
}

// Health says where liveness and readiness are served.
type Health struct {
	// `host:port`; `"0"` turns the probes off.
	HealthProbeBindAddress string `json:"healthProbeBindAddress"`
}

// Metrics says where and how Prometheus metrics are served.
type Metrics struct {
	// `host:port`; `"0"` turns metrics off.
	BindAddress string `json:"bindAddress"`
	// HTTPS, and only for callers whom the manager allows `get` on `/metrics`. `false` means plain HTTP for everyone, and is accepted on a loopback address only.
	SecureServing *bool `json:"secureServing"`
}

// LeaderElection says whether and with which Lease one of several Ferrys is chosen.
type LeaderElection struct {
	// Off is for a single Ferry only: two that both dispatch break every promise.
	LeaderElect *bool `json:"leaderElect"`
	// Name of the Lease; the Role `ferry-leader-election` names it too. Kueue's own is refused.
	ResourceName string `json:"resourceName"`
	// Namespace of the Lease; the Role `ferry-leader-election` must be there.
	ResourceNamespace string `json:"resourceNamespace"`
}

// ClientConnection limits the requests of one client.
type ClientConnection struct {
	// Requests per second in the long run; a negative number lifts the limit. 0 is refused: client-go would take it for 5.
	QPS *float32 `json:"qps"`
	// Requests that may exceed it at once, 1 or more.
	Burst *int32 `json:"burst"`
}

// Integrations says which job kinds are on.
type Integrations struct {
	// Names as in Kueue's configuration, such as `batch/job`; [kinds.md](kinds.md) has all. A kind that a cluster does not serve does no harm. A name that this version of Ferry does not know is refused, with the list of those it knows.
	Frameworks []string `json:"frameworks"`
}

// MultiKueue says how jobs are dispatched.
type MultiKueue struct {
	// Time between two looks for leftovers on the workers; `0s` turns them off.
	GCInterval *metav1.Duration `json:"gcInterval"`
	// Value of the label `kueue.x-k8s.io/multikueue-origin` on everything Ferry makes on a worker. Managers that share a worker must differ here. Jobs whose copies have another value are held where they run until it is set again or the copies are gone; see [taking over what runs](#taking-over-what-runs).
	Origin string `json:"origin"`
	// How long a job keeps its worker after the connection to it was lost; then it is offered to the others. `0s` is at once. A worker that this Ferry has not been connected to since it started, and one whose jobs are being read again, gets 90 s at least (a first connection, and `workers.reconnectBackoff.max`).
	WorkerLostTimeout *metav1.Duration `json:"workerLostTimeout"`
	// How long a job that has not run keeps a worker where none of its pods gets ready, while the worker says why (its warning is in the check's message); then it is offered to the others. `0s` is for ever. Ferry's own.
	StartTimeout *metav1.Duration `json:"startTimeout"`
	// How long the deletion of a MultiKueueCluster may wait, by the finalizer `ferry.dev/withdraw`, until its jobs are offered elsewhere and nothing of Ferry's is left there; so also a kubeconfig that leads to another cluster all of a sudden. After that, an event says what was left behind. `0s` withdraws nothing. Default: `workerLostTimeout`. Ferry's own.
	WithdrawTimeout *metav1.Duration `json:"withdrawTimeout"`
	// What stays on the workers, and for how long.
	ObjectRetentionPolicies ObjectRetentionPolicies `json:"objectRetentionPolicies"`
	// Whether one worker at a time preempts for a job.
	OrchestratedPreemption OrchestratedPreemption `json:"orchestratedPreemption"`
	// How workers are drained, see [placement.md](placement.md).
	Drain Drain `json:"drain"`
	// Who chooses the workers a job is offered to: `kueue.x-k8s.io/multikueue-dispatcher-all-at-once`, `kueue.x-k8s.io/multikueue-dispatcher-incremental`, `ferry.dev/dispatcher-best` (Ferry's own, see [placement.md](placement.md)), or the name of a controller of yours, which then sets `status.nominatedClusterNames` of each Workload. The annotation `ferry.dev/dispatcher` on a MultiKueueConfig wins, for the jobs of its queues.
	DispatcherName string `json:"dispatcherName"`
	// Only with the incremental dispatcher.
	IncrementalDispatcherConfig *IncrementalDispatcherConfig `json:"incrementalDispatcherConfig,omitempty"`
	// How the dispatcher `ferry.dev/dispatcher-best` chooses.
	BestDispatcherConfig BestDispatcherConfig `json:"bestDispatcherConfig"`
	// Whether the manager reaches the pods of all workers by their addresses. Pods on the manager then show those of their namesakes, and what the manager's controllers make of that is on you: they publish them as endpoints of Services with `publishNotReadyAddresses`, as LeaderWorkerSet makes, but fail on other Services that select such pods, because these have no node there.
	PodNetworksConnected bool `json:"podNetworksConnected"`
	// Kinds of your own to dispatch besides the built-in ones; see [custom-kinds.md](custom-kinds.md).
	ExternalFrameworks []ExternalFramework `json:"externalFrameworks,omitempty"`
	// How to log in to workers whose MultiKueueCluster names a ClusterProfile (`spec.clusterSource.clusterProfileRef`, of `multicluster.x-k8s.io`, in Ferry's namespace).
	ClusterProfile *ClusterProfile `json:"clusterProfile,omitempty"`
}

// ClusterProfile says how to log in to workers that a ClusterProfile describes.
type ClusterProfile struct {
	// Credential plugins, by the names under which ClusterProfiles list their access providers. The first one that a profile lists serves.
	AccessProviders []AccessProvider `json:"accessProviders,omitempty"`
	// Deprecated name of `accessProviders`; never both.
	CredentialsProviders []AccessProvider `json:"credentialsProviders,omitempty"`
}

// AccessProvider is a credential plugin.
type AccessProvider struct {
	// Name of the access provider.
	Name string `json:"name"`
	// The program that prints a credential, as in a kubeconfig. It runs in Ferry's container, for 30 s at most; what it prints is kept until it expires, and renewed when four fifths of that time are over. Nothing that a ClusterProfile says becomes a part of the command.
	ExecConfig ExecConfig `json:"execConfig"`
}

// ExecConfig is a program that prints a credential.
type ExecConfig struct {
	// `client.authentication.k8s.io/v1`, or `…/v1beta1`.
	APIVersion string `json:"apiVersion"`
	// The program, by its path or by its name on the `PATH` of Ferry's container.
	Command string `json:"command"`
	// Its arguments.
	Args []string `json:"args,omitempty"`
	// Variables besides those of Ferry's own environment.
	Env []ExecEnv `json:"env,omitempty"`
	// Whether the program is told the server, its certificate authority, and what the profile has for plugins.
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty"`
}

// ExecEnv is a variable for a program.
type ExecEnv struct {
	// Name of the variable.
	Name string `json:"name"`
	// Its value.
	Value string `json:"value"`
}

// BestDispatcherConfig says how the best workers are chosen. Ferry's own.
type BestDispatcherConfig struct {
	// How many workers are asked at first.
	Nominate *int32 `json:"nominate"`
	// Time until one more is asked besides, while none of them has admitted the job.
	After *metav1.Duration `json:"after"`
	// How much each score counts, compared to the others; see [placement.md](placement.md).
	Weights ScoreWeights `json:"weights"`
}

// ScoreWeights are what the scores of a worker are multiplied by.
type ScoreWeights struct {
	// How well the job fits.
	Fits *float32 `json:"fits"`
	// How much of the quota is left.
	Free *float32 `json:"free"`
	// What of `ferry.dev/prefer` is true of the worker.
	Preferred *float32 `json:"preferred"`
	// Whether the job ran there before.
	RanThere *float32 `json:"ranThere"`
}

// Drain says how workers are drained.
type Drain struct {
	// How many jobs of a worker with the annotation `ferry.dev/drain: "true"` may be on their way to others at once. Ferry's own.
	Concurrency *int32 `json:"concurrency"`
}

// OrchestratedPreemption says whether one worker at a time preempts for a job.
type OrchestratedPreemption struct {
	// Copies are made with Kueue's preemption gate `kueue.x-k8s.io/multikueue` closed, and the gate of one worker after the other is opened. Needs Kueue's feature gate `MultiKueueOrchestratedPreemption` on the workers: a worker without it takes no notice of the gate, and preempts when it likes, as without this setting. In Kueue's own file, that feature gate turns it on. Ferry's own.
	Enabled bool `json:"enabled"`
	// How long a worker that may preempt gets to admit the job before the next one may preempt too. The annotation `ferry.dev/preemption-timeout` on a MultiKueueConfig wins, for the jobs of its queues. Ferry's own.
	Timeout *metav1.Duration `json:"timeout"`
}

// ObjectRetentionPolicies says how long objects stay that nobody needs to run.
type ObjectRetentionPolicies struct {
	// The copies of jobs on workers.
	RemoteObjects RemoteObjects `json:"remoteObjects"`
}

// RemoteObjects are the copies of jobs on workers.
type RemoteObjects struct {
	// How long the copy of a job, with its pods and their logs, stays on the worker that ran it after its end, counted from the `Finished` condition on the manager. It holds no quota there, and never runs again. It goes at once when the job is deleted on the manager (so does `ttlSecondsAfterFinished` there), when its Workload there is, or when its worker is to be withdrawn from. `0s` removes it as soon as its result is on the manager. Ferry's own.
	AfterFinished *metav1.Duration `json:"afterFinished"`
}

// IncrementalDispatcherConfig sets the pace of the incremental dispatcher.
type IncrementalDispatcherConfig struct {
	// How many workers are added per round, in the order of the MultiKueueConfig; 1 or more.
	StepSize *int32 `json:"stepSize"`
	// How long a round waits for an admission before the next workers are added. Ferry's own.
	RoundTimeout *metav1.Duration `json:"roundTimeout"`
}

// ExternalFramework says how to dispatch a job kind that is not built in. Kueue knows the name only; the rest is Ferry's own.
type ExternalFramework struct {
	// `Kind.version.group`, such as `PipelineRun.v1.tekton.dev`. That of a built-in kind, alone, turns that kind on, as in `integrations.frameworks`.
	Name string `json:"name"`
	// The field by which the kind's own controller on the manager leaves a job alone: a path below `spec`, or a label or an annotation such as `metadata.labels[example.com/runs-elsewhere]`. `none` says that nothing on the manager would run such a job.
	ManagedBy string `json:"managedBy,omitempty"`
	// Paths that the copy on a worker is made without, such as `spec.ttlStrategy`.
	Drop []string `json:"drop,omitempty"`
	// Paths whose changes on the manager reach the copy while it runs.
	Flow []string `json:"flow,omitempty"`
	// Field that is set on each copy, so that it waits for Kueue on the worker: a path, set to `true`, or `path=text`.
	Suspend string `json:"suspend,omitempty"`
	// Whether the CRD has the subresource `status`.
	StatusSubresource *bool `json:"statusSubresource,omitempty"`
	// Resource in the API's URLs, such as `pipelineruns`; only for the printed roles and webhooks, where the kind's plural is irregular.
	Resource string `json:"resource,omitempty"`
}

// Workers says how Ferry talks to the workers.
type Workers struct {
	// Rate limit of the client for each worker.
	ClientConnection ClientConnection `json:"clientConnection"`
	// How long a request may be without an answer, or a list without more of it: that a large one, or a far worker, takes longer in all is no failure.
	RequestTimeout *metav1.Duration `json:"requestTimeout"`
	// How long a job that a worker admitted may take to be created there while that fails; then the worker rests for this job, 30 s at first, and the job is offered again. `0s` is for ever.
	PlaceTimeout *metav1.Duration `json:"placeTimeout"`
	// Time between two probes of a connected worker.
	ProbeInterval *metav1.Duration `json:"probeInterval"`
	// Deadline of a probe.
	ProbeTimeout *metav1.Duration `json:"probeTimeout"`
	// Failed probes in a row after which a worker counts as lost, 1 or more.
	FailureThreshold *int32 `json:"failureThreshold"`
	// The only folder from which kubeconfigs with `locationType: Path` are read; absolute.
	KubeConfigPathPrefix string `json:"kubeConfigPathPrefix"`
	// Waiting time between two attempts to connect, doubled after each failure.
	ReconnectBackoff ReconnectBackoff `json:"reconnectBackoff"`
	// Accept kubeconfigs without TLS, or without its verification. Plugins and references to files stay refused.
	AllowInsecureKubeConfigs bool `json:"allowInsecureKubeConfigs"`
}

// ReconnectBackoff bounds the waiting time between two attempts to connect.
type ReconnectBackoff struct {
	// After the first failure.
	Initial *metav1.Duration `json:"initial"`
	// At most; not below `initial`.
	Max *metav1.Duration `json:"max"`
}
