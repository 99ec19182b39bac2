package plan

import (
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// noteUnfenced warns, once, of pods that MultiKueue dispatched and that nothing keeps from running on the manager as well:
// they have no gate of Ferry's, and were not fenced off before Kueue started without MultiKueue.
func (v *view) noteUnfenced(p *Plan) {
	if v.Kind == nil || !slices.ContainsFunc(v.Workloads, isLive) {
		return
	}
	w := v.find(v.claim())
	if w == nil || !w.Reachable || !v.isUnfenced(w) {
		return
	}
	if message := reason.Unfenced(w.Name, v.Kind.Pods); !slices.Contains(v.Told, message) {
		p.manager(Warn{Jobs: v.Jobs, Workloads: v.Workloads, Message: message})
	}
}

// isUnfenced: none of the job's pods is seen on the manager, though MultiKueue made the copy on its worker.
func (v *view) isUnfenced(w *Worker) bool {
	if !v.lacksGates() {
		return false
	}
	if !v.Kind.Pods {
		return len(w.Unmarked.Workloads) > 0
	}
	return len(v.Pods) == 0 && len(w.Jobs) > 0 && !v.Kind.MarksPods(w.Jobs[0])
}

func isLive(wl *kueue.Workload) bool {
	return wl.DeletionTimestamp.IsZero() && !isTrue(wl, kueue.WorkloadFinished)
}
