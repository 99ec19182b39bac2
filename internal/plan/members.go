package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/reason"
)

// followMembers creates what joined a job of several objects after it was
// placed, as the replacement of a failed pod does. One that ran on the worker
// and is gone from there never runs again: it is shown as lost.
func (v *view) followMembers(p *Plan, w *Worker) {
	for _, job := range v.Jobs {
		there := named(w.Jobs, job.GetName())
		switch {
		case there != nil:
			v.followDeletion(p, w, job, there)
		case !isThere(job) || v.allEnded(one(job)):
		case v.Kind.Started(job):
			p.manager(MirrorStatus{Kind: v.Kind, Job: job, Status: v.Kind.Lost(job, v.Now), Urgent: true})
		case v.isLeft(w):
			p.Because = reason.WaitsForMember(job.GetName(), w.Name)
		default:
			v.create(p, w, job)
		}
	}
}

// isLeft tells whether a member that left the group still runs on the worker. Kueue there counts it, and would take the
// one in its place for one too many.
func (v *view) isLeft(w *Worker) bool {
	return v.leaving[w.Name] || slices.ContainsFunc(w.Jobs, func(job *unstructured.Unstructured) bool { return !isThere(job) && !v.allEnded(one(job)) })
}

// followDeletion stops on the worker what is being deleted on the manager. Kueue may
// hold it there in sight for as long as the rest of the group runs.
func (v *view) followDeletion(p *Plan, w *Worker, job, there *unstructured.Unstructured) {
	if !isThere(job) && isThere(there) && !v.allEnded(one(there)) {
		p.worker(w.Name, deleteOf(there, there.GroupVersionKind()))
	}
}

// mirrorPods shows each pod on the manager as its namesake on the worker is.
func (v *view) mirrorPods(p *Plan, w *Worker) {
	if !v.Kind.Pods {
		return
	}
	for _, pod := range v.Pods {
		if isThere(pod) {
			v.mirror(p, v.Kind.PodKind(), pod, v.namesake(w, pod))
		}
	}
}

// namesake is the worker's pod that the manager's stands for; nil while there is none of its revision.
func (v *view) namesake(w *Worker, pod *unstructured.Unstructured) *unstructured.Unstructured {
	there := named(w.Pods, pod.GetName())
	if there == nil || !v.Kind.SameRevision(v.Jobs[0], pod, there) {
		return nil
	}
	return there
}
