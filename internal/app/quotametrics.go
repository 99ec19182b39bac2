package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"ferry.dev/ferry/internal/capacity"
)

var workerQuota = prometheus.NewDesc("ferry_worker_quota",
	"Quota of the workers' ClusterQueues, while Ferry reads them: nominal, used (reserved), borrowed of that, and free (what may be borrowed included); CPU in cores.",
	[]string{"worker", "cluster_queue", "flavor", "resource", "what"}, nil)

// quotaMetrics shows what the workers' queues have when somebody asks, so that no series outlives its queue.
type quotaMetrics struct {
	workers func() []string
	quotas  func(worker string) []capacity.Quota
}

var _ prometheus.Collector = (*quotaMetrics)(nil)

// Describe implements prometheus.Collector.
func (*quotaMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- workerQuota }

// Collect implements prometheus.Collector.
func (m *quotaMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, worker := range m.workers() {
		for _, q := range m.quotas(worker) {
			for what, amount := range map[string]float64{"nominal": q.Nominal, "used": q.Used, "borrowed": q.Borrowed, "free": q.Free} {
				ch <- prometheus.MustNewConstMetric(workerQuota, prometheus.GaugeValue, amount, worker, string(q.Queue), string(q.Flavor), string(q.Resource), what)
			}
		}
	}
}
