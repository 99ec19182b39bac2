package capacity_test

import (
	"fmt"
	"testing"

	"ferry.dev/ferry/internal/capacity"
)

// BenchmarkPredict: a worker with 20 queues in a cohort, 500 Workloads of which are known, and one that fits.
func BenchmarkPredict(b *testing.B) {
	at := newBench()
	share()(at)
	for i := range 20 {
		name := fmt.Sprint("queue-", i)
		at.queue(name, "c", group("cpu", quota("f", "8")))
		for range 25 {
			at.runs(name, 0, "f", 100)
		}
	}
	w := capacity.NewWorker(at.queues, at.cohorts, at.flavors)
	b.ReportAllocs()
	for b.Loop() {
		w.Predict(at.request, at.known, nil)
	}
}
