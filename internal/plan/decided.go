package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var decided = Rule{
	Name: "Decided",
	Doc:  "The check is Retry or Rejected: the copies go, and Kueue on the manager is to act.",
	decide: func(v *view, p *Plan) bool {
		if !v.any(func(wl *kueue.Workload) bool {
			return v.checkIs(wl, kueue.CheckStateRetry, kueue.CheckStateRejected)
		}) {
			return false
		}
		p.Because = "The job goes back to the queue on the manager"
		v.removeFromAllBut(p)
		return true
	},
}
