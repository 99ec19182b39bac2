package app

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestJobsHeld: the gauge tells how many jobs are held now, whichever rule holds them, and each counts once.
func TestJobsHeld(t *testing.T) {
	registry := prometheus.NewRegistry()
	count := countDecisions(registry)
	a, b := kinds.Ref{Kind: "Job.batch", Namespace: "team", Name: "a"}, kinds.Ref{Kind: "Job.batch", Namespace: "team", Name: "b"}
	held, evicted, runs := plan.Plan{Rule: "Held", Held: true}, plan.Plan{Rule: "WaitForCleanup", Held: true}, plan.Plan{Rule: "Claimed"}
	for _, step := range []struct {
		ref  kinds.Ref
		plan plan.Plan
		want float64
	}{{a, runs, 0}, {a, held, 1}, {a, held, 1}, {b, evicted, 2}, {a, runs, 1}, {b, plan.Plan{Rule: "Gone"}, 0}} {
		count(step.ref, step.plan)
		if got := gauge(t, registry, "ferry_jobs_held"); got != step.want {
			t.Errorf("after %s of %s: %v are held, want %v", step.plan.Rule, step.ref.Name, got, step.want)
		}
	}
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
