package plan

import "ferry.dev/ferry/internal/reason"

var workerLeaves = Rule{
	Name: "WorkerLeaves",
	Doc:  "The worker that holds the claim can be reached, and is to be given up: its MultiKueueCluster is being deleted or leads to another cluster now, or the MultiKueueConfig names it no longer; or it is being drained, and it is this job's turn. The check becomes Retry: the job stops there and is offered to the others, while there is a connection to see to it.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable || w.Blind || !(w.Leaving || w.Moves) {
			return false
		}
		v.removeFromAllBut(p, w.Name)
		switch {
		case !w.Leaving:
			v.retry(p, reason.WorkerDrains(w.Name), false)
		case w.InConfig:
			v.retry(p, reason.WorkerLeaves(w.Name), true)
		default:
			v.retry(p, reason.WorkerLeft(w.Name), true)
		}
		return true
	},
}
