package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
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
	if left := v.retainedFor(w); left > 0 {
		v.removeFromAllBut(p, w.Name)
		v.showRest(p, w)
		p.again(left)
		return
	}
	v.removeFromAllBut(p)
	if v.Kind != nil && (w == nil || w.Reachable && !w.Blind) {
		v.showRest(p, w)
	}
}

// retainedFor is how long the copies on the worker that ran the job stay there; zero if they are to go. Only what ended
// there too stays: it holds no quota, and Kueue never starts it again.
func (v *view) retainedFor(w *Worker) time.Duration {
	if v.Policy.Retain <= 0 || v.Kind == nil || w == nil || w.Leaving || !v.endedThere(w) {
		return 0
	}
	since := v.finishedSince()
	if since.IsZero() {
		since = v.Now // the manager's Workload is about to end
	}
	return since.Add(v.Policy.Retain).Sub(v.Now)
}

// endedThere tells whether the job is over by what its worker shows. Kueue there may be about to end the Workload, or
// have deleted it since.
func (v *view) endedThere(w *Worker) bool {
	if len(w.Jobs) == 0 || !v.mayBeOver(w.Jobs...) {
		return false
	}
	shown := v.allEnded(w.Jobs)
	for _, c := range w.Workloads {
		if end := v.endOf(w, c); end != isResult && (end != notEnded || !shown) {
			return false
		}
	}
	return shown || len(w.Workloads) > 0
}

// restlessFor is how long what still runs of the job on its worker may do so; zero if nothing does.
func (v *view) restlessFor(w *Worker) time.Duration {
	if w == nil || !w.Reachable || v.Kind == nil {
		return 0
	}
	var since time.Time
	for _, job := range w.Jobs {
		if at := v.seen(Restless(v.Kind, job)); isThere(job) && at.After(since) {
			since = at
		}
	}
	if since.IsZero() {
		return 0
	}
	if ended := v.finishedSince(); !ended.IsZero() {
		since = ended
	}
	return min(since.Add(comesToRest).Sub(v.Now), comesToRest)
}

// isRestless tells whether a job is over and its status shows something running.
func (v *view) isRestless(job *unstructured.Unstructured) bool {
	_, is := Restless(v.Kind, job)
	return is
}

// finishedSince is when the last of the job's Workloads that ended did so on the manager; zero if none has.
func (v *view) finishedSince() time.Time {
	var last time.Time
	for _, wl := range v.Workloads {
		if f := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished); f != nil && f.LastTransitionTime.After(last) {
			last = f.LastTransitionTime.Time
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
