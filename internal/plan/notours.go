package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var notOurs = Rule{
	Name: "NotOurs",
	Doc:  "No Workload of the job has a MultiKueue admission check (or there is no Workload yet): nothing of it belongs on a worker. A job that a worker runs already stays there and is mirrored to its end: its queue was changed meanwhile. One that ran and has no Workload any more, as after an edit that asks for other quota, is shown as stopped, unless its status may be its result: Kueue makes the next Workload only then.",
	decide: func(v *view, p *Plan) bool {
		if v.Check != "" && len(v.Workloads) > 0 {
			return false
		}
		p.Because = "The job has no MultiKueue admission check"
		w := v.find(v.claim())
		if w == nil || v.any(lacksQuota) || v.any(func(wl *kueue.Workload) bool { return isTrue(wl, kueue.WorkloadEvicted) }) {
			v.removeFromAllBut(p)
			if v.lostItsWorkloads() {
				v.showStopped(p)
			}
			return true
		}
		v.removeFromAllBut(p, w.Name)
		v.mirrorAll(p, w)
		return true
	},
}

// lostItsWorkloads tells whether Kueue on the manager took the Workload of a job away that ran by its status.
func (v *view) lostItsWorkloads() bool {
	if len(v.Workloads) > 0 || v.Kind == nil || len(v.Kind.ManagedBy) == 0 {
		return false
	}
	return slices.ContainsFunc(v.Jobs, func(job *unstructured.Unstructured) bool {
		managed, _ := v.Kind.Managed(job)
		status, _, _ := unstructured.NestedMap(job.Object, "status")
		return managed && len(status) > 0 && v.isNoResult(job)
	})
}

// isNoResult tells whether the status of a job may be forgotten. Of some kinds nobody knows whether it is the last
// one: then it may be if the job was seen to run, and not to end.
func (v *view) isNoResult(job *unstructured.Unstructured) bool {
	_, known := v.Kind.Ended(job)
	return known || v.Kind.Endless || v.Host != ""
}
