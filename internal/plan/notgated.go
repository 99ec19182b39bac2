package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var notGated = Rule{
	Name: "NotGated",
	Doc:  "Pods of the job lack Ferry's gate, as they are older than what sends their queue to workers: they would run on the manager too once Kueue admits them there. Nobody is asked before they are made anew; the check says so.",
	decide: func(v *view, p *Plan) bool {
		if v.Kind == nil || v.Check == "" || v.claim() != "" || !v.lacksGates() || !v.isPending() {
			return false
		}
		v.removeFromAllBut(p)
		v.say(p, reason.NotGated)
		return true
	},
}

// lacksGates: Ferry sees gated pods only. A pod that it does not see, though its
// Workload or its set says that it is there, has no gate; or it is gone, and
// then its Workload soon is, too.
func (v *view) lacksGates() bool {
	if v.Kind.GVK == v.Kind.PodKind().GVK {
		return len(v.Jobs) == 0
	}
	if !v.Kind.Pods || len(v.Jobs) == 0 || !isThere(v.Jobs[0]) {
		return false
	}
	replicas, _, _ := unstructured.NestedInt64(v.Jobs[0].Object, "status", "replicas")
	return int64(len(v.Pods)) < replicas
}

// isPending: the job has quota on the manager, and workers would be asked.
func (v *view) isPending() bool {
	return len(v.Workloads) > 0 && v.all(func(wl *kueue.Workload) bool {
		return !lacksQuota(wl) && !isTrue(wl, kueue.WorkloadFinished) && !isTrue(wl, kueue.WorkloadEvicted) &&
			v.checkIs(wl, kueue.CheckStatePending)
	})
}
