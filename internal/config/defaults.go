package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// The defaults that other code or documents refer to.
const (
	DefaultNamespace            = "ferry-system"
	DefaultLease                = "ferry.ferry.dev"
	DefaultKubeConfigPathPrefix = "/etc/multikueue/kubeconfigs"

	DispatcherAllAtOnce   = kueueconfig.MultiKueueDispatcherModeAllAtOnce
	DispatcherIncremental = kueueconfig.MultiKueueDispatcherModeIncremental
	DispatcherBest        = "ferry.dev/dispatcher-best"
)

// SetDefaults fills in whatever is not set, but for two: the app derives MultiKueue.Origin from the manager's UID, and
// without Integrations.Frameworks all kinds are on, which Flags.Configuration knows.
// Apply flags before, as some defaults follow from other fields.
func (c *Configuration) SetDefaults() {
	c.APIVersion, c.Kind = APIVersion, Kind
	c.Namespace = cmp.Or(c.Namespace, DefaultNamespace)

	c.Webhook.Port = cmp.Or(c.Webhook.Port, new(kueueconfig.DefaultWebhookPort))
	c.Webhook.CertDir = cmp.Or(c.Webhook.CertDir, kueueconfig.DefaultWebhookCertDir)
	c.Health.HealthProbeBindAddress = cmp.Or(c.Health.HealthProbeBindAddress, kueueconfig.DefaultHealthProbeBindAddress)
	c.Metrics.BindAddress = cmp.Or(c.Metrics.BindAddress, kueueconfig.DefaultMetricsBindAddress)
	c.Metrics.SecureServing = cmp.Or(c.Metrics.SecureServing, new(true))

	c.LeaderElection.LeaderElect = cmp.Or(c.LeaderElection.LeaderElect, new(true))
	c.LeaderElection.ResourceName = cmp.Or(c.LeaderElection.ResourceName, DefaultLease)
	c.LeaderElection.ResourceNamespace = cmp.Or(c.LeaderElection.ResourceNamespace, c.Namespace)

	c.ClientConnection.setDefaults(kueueconfig.DefaultClientConnectionQPS, kueueconfig.DefaultClientConnectionBurst)
	c.MultiKueue.setDefaults()
	c.Workers.setDefaults()
}

func (c *ClientConnection) setDefaults(qps float32, burst int32) {
	c.QPS = cmp.Or(c.QPS, new(qps))
	c.Burst = cmp.Or(c.Burst, new(burst))
}

func (m *MultiKueue) setDefaults() {
	m.GCInterval = cmp.Or(m.GCInterval, duration(kueueconfig.DefaultMultiKueueGCInterval))
	m.WorkerLostTimeout = cmp.Or(m.WorkerLostTimeout, duration(kueueconfig.DefaultMultiKueueWorkerLostTimeout))
	m.StartTimeout = cmp.Or(m.StartTimeout, duration(10*time.Minute))
	m.WithdrawTimeout = cmp.Or(m.WithdrawTimeout, m.WorkerLostTimeout)
	m.Drain.Concurrency = cmp.Or(m.Drain.Concurrency, new(int32(5)))
	m.OrchestratedPreemption.Timeout = cmp.Or(m.OrchestratedPreemption.Timeout, duration(5*time.Minute))
	retained := &m.ObjectRetentionPolicies.RemoteObjects
	retained.AfterFinished = cmp.Or(retained.AfterFinished, duration(0))
	m.DispatcherName = cmp.Or(m.DispatcherName, DispatcherAllAtOnce)
	m.BestDispatcherConfig.setDefaults()
	for i := range m.ExternalFrameworks {
		m.ExternalFrameworks[i].setDefaults()
	}
	if m.DispatcherName != DispatcherIncremental {
		return
	}
	m.IncrementalDispatcherConfig = cmp.Or(m.IncrementalDispatcherConfig, &IncrementalDispatcherConfig{})
	pace := m.IncrementalDispatcherConfig
	pace.StepSize = cmp.Or(pace.StepSize, new(int32(3)))
	pace.RoundTimeout = cmp.Or(pace.RoundTimeout, duration(5*time.Minute))
}

func (b *BestDispatcherConfig) setDefaults() {
	b.Nominate = cmp.Or(b.Nominate, new(int32(1)))
	b.After = cmp.Or(b.After, duration(30*time.Second))
	b.Weights.Fits = cmp.Or(b.Weights.Fits, new(float32(100)))
	b.Weights.Free = cmp.Or(b.Weights.Free, new(float32(10)))
	b.Weights.Preferred = cmp.Or(b.Weights.Preferred, new(float32(20)))
	b.Weights.RanThere = cmp.Or(b.Weights.RanThere, new(float32(5)))
}

func (w *Workers) setDefaults() {
	w.ClientConnection.setDefaults(200, 400)
	w.RequestTimeout = cmp.Or(w.RequestTimeout, duration(10*time.Second))
	w.PlaceTimeout = cmp.Or(w.PlaceTimeout, duration(time.Minute))
	w.ProbeInterval = cmp.Or(w.ProbeInterval, duration(5*time.Second))
	w.ProbeTimeout = cmp.Or(w.ProbeTimeout, duration(5*time.Second))
	w.FailureThreshold = cmp.Or(w.FailureThreshold, new(int32(3)))
	w.KubeConfigPathPrefix = cmp.Or(w.KubeConfigPathPrefix, DefaultKubeConfigPathPrefix)
	w.ReconnectBackoff.Initial = cmp.Or(w.ReconnectBackoff.Initial, duration(time.Second))
	w.ReconnectBackoff.Max = cmp.Or(w.ReconnectBackoff.Max, duration(time.Minute))
}

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
