package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var noSuchKind = Rule{
	Name: "NoSuchKind",
	Doc:  "The job is of a kind that is not dispatched: the check is Rejected, the message names the kind, and what is left of it on workers goes.",
	decide: func(v *view, p *Plan) bool {
		if v.Kind != nil {
			return false
		}
		message := reason.NoOwner
		if v.OwnerKind != "" {
			message = reason.NoAdapter(v.OwnerKind)
		}
		v.settle(p, kueue.CheckStateRejected, message, true)
		v.removeFromAllBut(p)
		return true
	},
}
