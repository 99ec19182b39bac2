package app

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// decisions are the metrics of what was decided.
type decisions struct {
	total *prometheus.CounterVec

	mu   sync.Mutex
	held map[kinds.Ref]struct{} // by the last decision about each
}

// countDecisions counts which rule decided how often, and the jobs that are held at the moment.
func countDecisions(registry prometheus.Registerer) func(kinds.Ref, plan.Plan) {
	d := &decisions{held: map[kinds.Ref]struct{}{}}
	d.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ferry_decisions_total", Help: "Decisions about jobs, by the rule that made them (docs/rules.md).",
	}, []string{"rule"})
	registry.MustRegister(d.total, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ferry_jobs_held", Help: "Jobs that are held now, as a worker has a copy of them with another multikueue origin.",
	}, d.heldNow))
	return d.count
}

func (d *decisions) count(ref kinds.Ref, p plan.Plan) {
	d.total.WithLabelValues(p.Rule).Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.Held {
		d.held[ref] = struct{}{}
	} else {
		delete(d.held, ref)
	}
}

func (d *decisions) heldNow() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return float64(len(d.held))
}
