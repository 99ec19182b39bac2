package fleet

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	connectedGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ferry_worker_connected",
		Help: "Whether Ferry has a live connection to the worker (1) or not (0).",
	}, []string{"worker"})
	lossCounter = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ferry_worker_connection_losses_total",
		Help: "How often a live connection to the worker ended: lost, or given up for new or unusable credentials.",
	}, []string{"worker"})
)

func init() { metrics.Registry.MustRegister(connectedGauge, lossCounter) }

func showConnected(worker string, s Status) {
	value := 0.0
	if s.Usable() {
		value = 1
	}
	connectedGauge.WithLabelValues(worker).Set(value)
}

func countLoss(worker string) { lossCounter.WithLabelValues(worker).Inc() }

// forget drops the series of a worker that is no more.
func forget(worker string) {
	connectedGauge.DeleteLabelValues(worker)
	lossCounter.DeleteLabelValues(worker)
}
