package apply

import (
	"github.com/prometheus/client_golang/prometheus"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Metrics are the counters that MultiKueue has too, by its names and labels.
type Metrics struct {
	dispatchedTotal, admittedTotal *prometheus.CounterVec
	role                           string
}

// NewMetrics registers the counters; role is the replica_role label's value, as in Kueue "leader" or "standalone".
func NewMetrics(registry prometheus.Registerer, role string) *Metrics {
	labels := []string{"cluster_queue", "cluster", "replica_role"}
	m := &Metrics{
		dispatchedTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: "multikueue", Name: "workloads_dispatched_total",
			Help: "Copies of Workloads created on workers, by ClusterQueue of the manager and worker.",
		}, labels),
		admittedTotal: prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: "multikueue", Name: "workloads_admitted_total",
			Help: "Workloads that a worker won, by ClusterQueue of the manager and worker.",
		}, labels),
		role: role,
	}
	registry.MustRegister(m.dispatchedTotal, m.admittedTotal)
	return m
}

func (m *Metrics) dispatched(queue kueue.ClusterQueueReference, worker string) {
	m.dispatchedTotal.WithLabelValues(string(queue), worker, m.role).Inc()
}

func (m *Metrics) admitted(wl *kueue.Workload, worker string) {
	if wl.Status.Admission != nil {
		m.admittedTotal.WithLabelValues(string(wl.Status.Admission.ClusterQueue), worker, m.role).Inc()
	}
}
