package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var evictedOnManager = Rule{
	Name: "EvictedOnManager",
	Doc:  "Kueue on the manager evicts the job: its copy stops and goes; then the job is shown as stopped, which lets Kueue release the quota.",
	decide: func(v *view, p *Plan) bool {
		if !v.any(func(wl *kueue.Workload) bool { return isTrue(wl, kueue.WorkloadEvicted) }) {
			return false
		}
		p.Because = "The job was evicted on the manager"
		v.removeFromAllBut(p)
		v.showStopped(p)
		v.sayStuck(p)
		return true
	},
}
