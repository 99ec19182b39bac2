package plan

import (
	"fmt"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

var specDrift = Rule{
	Name: "SpecDrift",
	Doc:  "The manager's Workload changed after the copy was made, other than in its priority: the copy goes and is made anew; if it held the claim, the check becomes Retry.",
	decide: func(v *view, p *Plan) bool {
		drifted := false
		for i := range v.Workers {
			w := &v.Workers[i]
			if !w.Reachable || !v.concerns(w) || !v.drifted(w) {
				continue
			}
			drifted = true
			p.Because = fmt.Sprintf("The job changed after it was offered to worker %q", w.Name)
			if v.claim() == w.Name {
				v.retry(p, reason.CopyChanged(w.Name), false)
			} else {
				v.removeFrom(p, w)
			}
		}
		return drifted
	},
}

func (v *view) drifted(w *Worker) bool {
	for _, c := range w.Workloads {
		if wl := v.original(c.Name); c.Annotations[kinds.SpecHashAnnotation] != kinds.SpecHash(wl) {
			return true
		}
	}
	return false
}

// followPriority lets copies that stay take over a changed priority.
func (v *view) followPriority(p *Plan, w *Worker) {
	for _, c := range w.Workloads {
		if wl := v.original(c.Name); !samePriority(c, wl) && c.DeletionTimestamp.IsZero() {
			p.worker(w.Name, SetPriority{Copy: c, Priority: wl.Spec.Priority, PriorityClassRef: wl.Spec.PriorityClassRef})
		}
	}
}

func samePriority(a, b *kueue.Workload) bool {
	return equalPtr(a.Spec.Priority, b.Spec.Priority) && equalPtr(a.Spec.PriorityClassRef, b.Spec.PriorityClassRef)
}

func equalPtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
