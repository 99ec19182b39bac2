package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var notManaged = Rule{
	Name: "NotManaged",
	Doc:  "The job's managedBy is not MultiKueue's, as it is older than what sends its queue to workers: a controller on the manager would run it as well. Nobody is asked before that is mended; the check says how. Was it dispatched before its managedBy changed, the check becomes Retry.",
	decide: func(v *view, p *Plan) bool {
		for _, job := range v.Jobs {
			managed, why := v.Kind.Managed(job)
			if managed {
				continue
			}
			message := reason.NotManaged(why)
			p.Because = message
			v.removeFromAllBut(p)
			switch {
			case !v.isPending() && !v.any(v.isReady):
			case v.claim() == "":
				v.say(p, message)
			default:
				v.retry(p, message, true)
			}
			return true
		}
		return false
	},
}

func (v *view) isReady(wl *kueue.Workload) bool { return v.checkIs(wl, kueue.CheckStateReady) }
