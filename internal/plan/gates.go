package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// openGates lets one worker after the other preempt for the job: first the one that was the first to be blocked by its
// gate, the next one only if the job is not admitted for a time. A worker that cannot be seen is not waited for. Where
// preemption is not orchestrated (any more), all may preempt at once.
func (v *view) openGates(p *Plan, nominees []string) {
	var blocked []*Worker
	var opened time.Time
	for i := range v.Workers {
		w := &v.Workers[i]
		if !w.Reachable || !slices.Contains(nominees, w.Name) {
			continue
		}
		if at := openedAt(w); at.After(opened) {
			opened = at
		}
		if !v.blockedSince(w).IsZero() {
			blocked = append(blocked, w)
		}
	}
	left := opened.Add(v.PreemptionTimeout).Sub(v.Now)
	switch {
	case len(blocked) == 0:
	case v.PreemptionTimeout <= 0:
		for _, w := range blocked {
			v.letPreempt(p, w)
		}
	case !opened.IsZero() && left > 0:
		p.again(left)
	default:
		v.letPreempt(p, slices.MinFunc(blocked, func(a, b *Worker) int { return v.blockedSince(a).Compare(v.blockedSince(b)) }))
		p.again(v.PreemptionTimeout)
	}
}

func (v *view) letPreempt(p *Plan, w *Worker) {
	for _, c := range w.Workloads {
		if isClosed(c) {
			p.worker(w.Name, OpenGate{Copy: c, At: metav1.NewTime(v.Now)})
		}
	}
}

// blockedSince is since when a copy on the worker would be admitted if it were allowed to preempt; zero if none would.
func (v *view) blockedSince(w *Worker) (first time.Time) {
	for _, c := range w.Workloads {
		if at := v.since(c, kueue.WorkloadBlockedOnPreemptionGates); isClosed(c) && !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// openedAt is when the worker was allowed to preempt for the job, by our own clock; zero if it is not.
func openedAt(w *Worker) (last time.Time) {
	for _, c := range w.Workloads {
		if state := gateOf(c); state != nil && state.Position == kueue.PreemptionGatePositionOpen && state.LastTransitionTime.After(last) {
			last = state.LastTransitionTime.Time
		}
	}
	return last
}

// isClosed: a gate that nobody wrote about in the status is closed, so that a copy is gated from its creation.
func isClosed(c *kueue.Workload) bool {
	gated := slices.ContainsFunc(c.Spec.PreemptionGates, func(g kueue.PreemptionGate) bool { return g.Name == kinds.PreemptionGate })
	state := gateOf(c)
	return gated && (state == nil || state.Position != kueue.PreemptionGatePositionOpen)
}

func gateOf(c *kueue.Workload) *kueue.PreemptionGateState {
	i := slices.IndexFunc(c.Status.PreemptionGates, func(g kueue.PreemptionGateState) bool { return g.Name == kinds.PreemptionGate })
	if i < 0 {
		return nil
	}
	return &c.Status.PreemptionGates[i]
}
