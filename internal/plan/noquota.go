package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var noQuota = Rule{
	Name: "NoQuota",
	Doc:  "The Workload has no quota on the manager (not yet, or no longer): every worker removes its copy.",
	decide: func(v *view, p *Plan) bool {
		if !v.any(lacksQuota) {
			return false
		}
		p.Because = "The job waits for quota on the manager"
		v.removeFromAllBut(p)
		v.showStopped(p)
		v.sayStuck(p)
		return true
	},
}

func lacksQuota(wl *kueue.Workload) bool {
	if isTrue(wl, kueue.WorkloadFinished) {
		return false
	}
	return Reservation(wl) == "" || wl.Status.Admission == nil || !wl.DeletionTimestamp.IsZero()
}
