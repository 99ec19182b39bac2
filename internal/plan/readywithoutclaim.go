package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var readyWithoutClaim = Rule{
	Name: "ReadyWithoutClaim",
	Doc:  "The check is Ready, yet no worker is recorded, which dispatch never leaves behind: the check becomes Retry.",
	decide: func(v *view, p *Plan) bool {
		ready := v.any(func(wl *kueue.Workload) bool { return v.checkIs(wl, kueue.CheckStateReady) })
		if v.claim() != "" || !ready {
			return false
		}
		v.retry(p, reason.NoClaim, true)
		return true
	},
}
