package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// link ties the job's copy to the Workload's where the kind cannot do that by
// itself: first the Workload gets its owner, then the job its queue. In the other
// order Kueue on the worker would make a Workload of its own.
func (v *view) link(p *Plan, w *Worker) (linked bool) {
	if !v.Kind.Unlinked {
		return true
	}
	p.Because = reason.Placing(w.Name)
	original, job := v.Jobs[0], w.Jobs[0]
	for _, c := range w.Workloads {
		if !metav1.IsControlledBy(c, job) {
			p.worker(w.Name, OwnWorkload{Copy: c, Owner: job})
			return false
		}
	}
	if want := kinds.Queued(original, job); want != nil {
		p.worker(w.Name, EditJob{Copy: job, Want: want})
		return false
	}
	return true
}
