package observe

import (
	"maps"
	"testing"
	"time"

	"ferry.dev/ferry/internal/plan"
)

// TestSince: a fact counts from when it was first seen, anew once it did not hold in between, and on each worker by itself.
func TestSince(t *testing.T) {
	m, start := NewMemory(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	evicted, again := plan.Fact{UID: "a", Condition: "Evicted", At: 1}, plan.Fact{UID: "a", Condition: "Evicted", At: 2}
	for i, step := range []struct {
		worker string
		facts  []plan.Fact
		want   map[plan.Fact]int // by the step that saw it first
	}{
		{"w1", []plan.Fact{evicted}, map[plan.Fact]int{evicted: 0}},
		{"w1", []plan.Fact{evicted}, map[plan.Fact]int{evicted: 0}},
		{"w2", []plan.Fact{evicted}, map[plan.Fact]int{evicted: 2}},
		{"w1", []plan.Fact{evicted, again}, map[plan.Fact]int{evicted: 0, again: 3}},
		{"w1", []plan.Fact{again}, map[plan.Fact]int{again: 3}},
		{"w1", nil, map[plan.Fact]int{}},
		{"w1", []plan.Fact{again}, map[plan.Fact]int{again: 6}},
	} {
		got := map[plan.Fact]int{}
		for fact, at := range m.since(step.worker, train, step.facts, start.Add(time.Duration(i)*time.Second)) {
			got[fact] = int(at.Sub(start) / time.Second)
		}
		if !maps.Equal(got, step.want) {
			t.Errorf("step %d: seen first at %v, want %v", i, got, step.want)
		}
	}
	m.Forget(train)
	if len(m.jobs) > 0 {
		t.Errorf("of a job that is forgotten, %v is kept", m.jobs)
	}
}
