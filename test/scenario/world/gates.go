package world

import (
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// checkGate: of one job, only one of the workers in reach may preempt at a time.
func (w *World) checkGate(worker *Worker, wl *kueue.Workload) {
	opened := kueuemodel.GateOpenedAt(wl)
	if opened == nil || w.Clock.Now().Sub(opened.Time) >= time.Second {
		return // not by this write; times in a status are whole seconds
	}
	for _, other := range w.workers {
		copied := other.Cluster.Workload(wl.Namespace, wl.Name)
		if other == worker || other.Cut || copied == nil || origin(copied) != origin(wl) {
			continue
		}
		if at := kueuemodel.GateOpenedAt(copied); at != nil && w.Clock.Now().Sub(at.Time) < w.policy.PreemptionTimeout {
			w.Violation("%s may preempt on %s, and since %s on %s", wl.Name, worker.Name, at, other.Name)
		}
	}
}
