package app

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ferry.dev/ferry/internal/capacity"
)

// TestQuotaMetrics: four series for each quota, and none of a worker of which nothing is known.
func TestQuotaMetrics(t *testing.T) {
	m := &quotaMetrics{
		workers: func() []string { return []string{"w1", "w2"} },
		quotas: func(worker string) []capacity.Quota {
			if worker == "w2" {
				return nil
			}
			return []capacity.Quota{{Queue: "q", Flavor: "f", Resource: "cpu", Nominal: 8, Used: 9.5, Borrowed: 1.5, Free: 2}}
		},
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "what" {
				got[label.GetValue()] = metric.GetGauge().GetValue()
			}
		}
	}
	if want := map[string]float64{"nominal": 8, "used": 9.5, "borrowed": 1.5, "free": 2}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
