package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var notManaged = Rule{
	Name: "NotManaged",
	Doc:  "The job's managedBy is not MultiKueue's, so a controller on the manager would run it as well: the check is Rejected.",
	decide: func(v *view, p *Plan) bool {
		for _, job := range v.Jobs {
			if managed, why := v.Kind.Managed(job); !managed {
				v.settle(p, kueue.CheckStateRejected, reason.NotManaged(why), true)
				v.removeFromAllBut(p)
				return true
			}
		}
		return false
	},
}
