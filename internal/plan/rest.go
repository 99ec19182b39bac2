package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// comesToRest is how long the copy of a job that is over stays where its status still shows something running: the end
// of a job may come before that of its last pods, and its operator corrects the status only then.
const comesToRest = 30 * time.Second

// clearUp removes what workers have of a job that is over. The worker that ran it keeps it until nothing of it runs any
// more, but not for long, and the manager is told what is left: what goes with the copy does not run either.
func (v *view) clearUp(p *Plan) {
	w := v.find(v.claim())
	if left := v.restlessFor(w); left > 0 {
		v.removeFromAllBut(p, w.Name)
		v.mirrorJobs(p, w.Jobs)
		p.again(left)
		return
	}
	v.removeFromAllBut(p)
	if v.Kind != nil && (w == nil || w.Reachable && !w.Blind) {
		v.showRest(p, w)
	}
}

// restlessFor is how long what still runs of the job on its worker may do so; zero if nothing does.
func (v *view) restlessFor(w *Worker) time.Duration {
	isRestless := func(job *unstructured.Unstructured) bool { return isThere(job) && v.isRestless(job) }
	if w == nil || !w.Reachable || v.Kind == nil || !slices.ContainsFunc(w.Jobs, isRestless) {
		return 0
	}
	return min(v.overSince().Add(comesToRest).Sub(v.Now), comesToRest)
}

// isRestless tells whether a job is over and its status shows something running.
func (v *view) isRestless(job *unstructured.Unstructured) bool {
	return v.allEnded(one(job)) && !v.Kind.AtRest(job)
}

// overSince is when the job's Workloads ended on the manager, or, while they have not, when its status there last changed.
func (v *view) overSince() time.Time {
	var last time.Time
	for _, wl := range v.Workloads {
		if f := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished); f != nil && f.LastTransitionTime.After(last) {
			last = f.LastTransitionTime.Time
		}
	}
	if !last.IsZero() {
		return last
	}
	for _, job := range v.Jobs {
		if at := kinds.LastTransition(job); at.After(last) {
			last = at
		}
	}
	return last
}

// showRest shows an ended job at rest.
func (v *view) showRest(p *Plan, w *Worker) {
	for _, job := range v.Jobs {
		if !isThere(job) || !v.isRestless(job) {
			continue
		}
		var there *unstructured.Unstructured
		if w != nil {
			there = named(w.Jobs, job.GetName())
		}
		if there != nil && v.isRestless(there) {
			there = nil // it goes now
		}
		v.mirror(p, v.Kind, job, there)
	}
}
