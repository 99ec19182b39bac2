// Package operator is the table of job operators that a playground can run: what each is started with and needs, as data.
package operator

// Row is one operator. Paths are relative to its Go module. Args, Env and Config are text/templates over Place.
type Row struct {
	// Name is the component's name (after the cluster's), its folder under playground/tools, and its binary.
	Name string
	// Frameworks are Kueue's names for its kinds.
	Frameworks []string
	// CRDs are files or folders; they go to every cluster, since jobs are submitted to the manager.
	CRDs []string
	// Webhooks is a file of webhook configurations, "" when the operator runs without.
	Webhooks string
	// Selectors narrow webhooks to objects with a label, as the operator's kustomization does: webhook → label.
	Selectors map[string]string
	// Objects are files or folders of objects that come with the operator; they go to every cluster.
	Objects []string
	// Namespace is made if the operator keeps something there.
	Namespace string
	// ConfigMap, if set, holds Config in Namespace; otherwise Config is a file.
	ConfigMap, Config string
	Args, Env         []string
	// Health is the path that answers 200 once the operator, with its webhooks, is ready.
	Health string
	// Needs are operators that have to run too.
	Needs []string
	// OnManager says that the operator runs on the manager as well as on the workers.
	OnManager bool
	// Rays says that the operator asks Ray heads over HTTP.
	Rays bool
}

// Place is what a row's templates may ask for: one operator in one cluster.
type Place struct {
	Config                  string // path of the config file
	Certs                   string // folder with tls.crt and tls.key
	HealthPort, WebhookPort int    // on 127.0.0.1
	RayProxy                string // URL of the HTTP proxy that stands in for Ray heads
}

// componentConfig is the part that operators which descend from Kueue's configuration have in common.
const componentConfig = `kind: Configuration
health:
  healthProbeBindAddress: 127.0.0.1:{{.HealthPort}}
metrics:
  bindAddress: "0"
leaderElection:
  leaderElect: false
`

// webhookConfig is the webhooks' part of it, with certificates that somebody else made.
const webhookConfig = `webhook:
  host: 127.0.0.1
  port: {{.WebhookPort}}
  certDir: {{.Certs}}
internalCertManagement:
  enable: false
`

var rows = []Row{
	{
		Name:       "jobset",
		Frameworks: []string{"jobset.x-k8s.io/jobset"},
		CRDs:       []string{"config/components/crd/bases"},
		Webhooks:   "config/components/webhook/manifests.yaml",
		Selectors:  map[string]string{"mpod.kb.io": "jobset.sigs.k8s.io/jobset-name", "vpod.kb.io": "jobset.sigs.k8s.io/jobset-name"},
		Config:     "apiVersion: config.jobset.x-k8s.io/v1alpha1\n" + componentConfig + webhookConfig,
		Args:       []string{"--config={{.Config}}"},
		Health:     "/readyz",
	},
	{
		Name:       "lws",
		Frameworks: []string{"leaderworkerset.x-k8s.io/leaderworkerset"},
		CRDs:       []string{"config/crd/bases"},
		Webhooks:   "config/webhook/manifests.yaml",
		Selectors:  map[string]string{"mpod.kb.io": "leaderworkerset.sigs.k8s.io/name", "vpod.kb.io": "leaderworkerset.sigs.k8s.io/name"},
		Config:     "apiVersion: config.lws.x-k8s.io/v1alpha1\n" + componentConfig + webhookConfig,
		Args:       []string{"--config={{.Config}}"},
		Health:     "/readyz",
		OnManager:  true, // a LeaderWorkerSet has no managedBy: there its pods are gated, and its status comes from them
	},
	{
		Name: "training-operator",
		Frameworks: []string{
			"kubeflow.org/pytorchjob", "kubeflow.org/tfjob", "kubeflow.org/xgboostjob", "kubeflow.org/paddlejob", "kubeflow.org/jaxjob",
		},
		// Its MPIJob is an older one; the MPI Operator's takes that name.
		CRDs: []string{
			"manifests/base/crds/kubeflow.org_pytorchjobs.yaml", "manifests/base/crds/kubeflow.org_tfjobs.yaml",
			"manifests/base/crds/kubeflow.org_xgboostjobs.yaml", "manifests/base/crds/kubeflow.org_paddlejobs.yaml",
			"manifests/base/crds/kubeflow.org_jaxjobs.yaml",
		},
		Webhooks: "manifests/base/webhook/manifests.yaml",
		Args: []string{
			"--enable-scheme=pytorchjob", "--enable-scheme=tfjob", "--enable-scheme=xgboostjob", "--enable-scheme=paddlejob", "--enable-scheme=jaxjob",
			"--health-probe-bind-address=127.0.0.1:{{.HealthPort}}", "--metrics-bind-address=0", "--webhook-server-port={{.WebhookPort}}",
			"--kube-api-qps=300", "--kube-api-burst=500",
		},
		Health: "/readyz",
	},
	{
		Name:       "mpi-operator",
		Frameworks: []string{"kubeflow.org/mpijob"},
		CRDs:       []string{"manifests/base/kubeflow.org_mpijobs.yaml"},
		Namespace:  "mpi-operator", // for its lease, which it always takes
		Args:       []string{"--lock-namespace=mpi-operator", "--kube-api-qps=300", "--kube-api-burst=500"},
		Env:        []string{"HEALTH_ADDRESS=127.0.0.1:{{.HealthPort}}"},
		Health:     "/healthz",
	},
	{
		Name:       "kuberay",
		Frameworks: []string{"ray.io/rayjob", "ray.io/raycluster", "ray.io/rayservice"},
		// RayCronJobs are behind a gate.
		CRDs: []string{"config/crd/bases/ray.io_rayjobs.yaml", "config/crd/bases/ray.io_rayclusters.yaml", "config/crd/bases/ray.io_rayservices.yaml"},
		// Its default installation has no webhooks either.
		Args: []string{
			"--health-probe-bind-address=127.0.0.1:{{.HealthPort}}", "--metrics-addr=0", "--enable-leader-election=false",
			"--qps=300", "--burst=500",
		},
		Env:    []string{"HTTP_PROXY={{.RayProxy}}"},
		Rays:   true,
		Health: "/readyz",
	},
	{
		Name:       "trainer",
		Frameworks: []string{"trainer.kubeflow.org/trainjob"},
		CRDs:       []string{"manifests/base/crds"},
		Webhooks:   "manifests/base/webhook/manifests.yaml",
		Objects:    []string{"manifests/base/runtimes"},
		Config: "apiVersion: config.trainer.kubeflow.org/v1alpha1\n" + componentConfig + `webhook:
  host: 127.0.0.1
  port: {{.WebhookPort}}
certManagement:
  enable: false
clientConnection:
  qps: 300
  burst: 500
`,
		Args:   []string{"--config={{.Config}}"},
		Health: "/readyz",
		Needs:  []string{"jobset"},
	},
	{
		Name:       "appwrapper",
		Frameworks: []string{"workload.codeflare.dev/appwrapper"},
		CRDs:       []string{"config/crd/bases"},
		Webhooks:   "config/webhook/manifests.yaml",
		Namespace:  "appwrapper-system",
		ConfigMap:  "appwrapper-operator-config",
		// Ferry makes the copies on workers. Whether it may create what they wrap is not what shall be looked at: the user
		// who wrote the AppWrapper was let on the manager.
		Config: `appwrapper:
  userRBACAdmissionCheck: false
controllerManager:
  health:
    bindAddress: 127.0.0.1:{{.HealthPort}}
  metrics:
    bindAddress: "0"
`,
		Args:   []string{"--config=appwrapper-operator-config"},
		Env:    []string{"NAMESPACE=appwrapper-system", "WEBHOOK_PORT={{.WebhookPort}}"},
		Health: "/readyz",
	},
}
