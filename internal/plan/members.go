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

// followLoss sees a pod on its own to its end that somebody deletes on its worker: an eviction would make Kueue delete
// the manager's pod without a trace. While it goes, its end is mirrored as the worker shows it; gone, it is lost.
func (v *view) followLoss(p *Plan, w *Worker) bool {
	job := v.Jobs[0]
	if v.Kind.Group || !isThere(job) || v.allEnded(v.Jobs) {
		return false
	}
	there := named(w.Jobs, job.GetName())
	switch {
	case there != nil && v.Kind.Started(there):
		v.mirrorAll(p, w)
		p.Because = reason.GoesOnWorker(v.Kind.GVK.Kind, w.Name)
	case there == nil && v.Kind.Started(job):
		p.manager(MirrorStatus{Kind: v.Kind, Job: job, Status: v.Kind.Lost(job, v.Now), Urgent: true})
		p.Because = reason.GoneFromWorker(v.Kind.GVK.Kind, w.Name)
	default:
		return false
	}
	return true
}

// isGoneAlone: a pod on its own vanished from its worker, maybe with its Workload.
func (v *view) isGoneAlone(p *Plan, w *Worker) bool {
	return len(w.Jobs) == 0 && !w.Blind && v.followLoss(p, w)
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
