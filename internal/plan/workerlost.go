package plan

import (
	"fmt"

	"ferry.dev/ferry/internal/reason"
)

var workerLost = Rule{
	Name: "WorkerLost",
	Doc:  "The worker that holds the claim cannot be reached, or cannot show jobs of this kind: within workerLostTimeout nothing happens, after it the check becomes Retry. A worker that Ferry has not been connected to since it started has at least the time of a first connection.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil && v.claim() != "" {
			v.retry(p, reason.WorkerLost(v.claim()), true)
			return true
		}
		if w == nil || (w.Reachable && w.InConfig && !w.Blind) {
			return false
		}
		v.removeFromAllBut(p, w.Name)
		left := v.graceLeft(w)
		if left <= 0 {
			v.retry(p, lossOf(w), true)
			return true
		}
		p.again(left)
		if w.Reachable {
			// What can be seen there is still shown.
			return v.serveClaim(p, w)
		}
		p.Because = fmt.Sprintf("Worker %q is out of reach; it has %s left to come back", w.Name, left.Round(1e9))
		v.informOfLoss(p, w)
		return true
	},
}

// lossOf says in which way a worker was lost.
func lossOf(w *Worker) string {
	switch {
	case !w.Reachable:
		return reason.WorkerLost(w.Name)
	case !w.InConfig:
		return reason.WorkerLeft(w.Name)
	default:
		return reason.WorkerBlind(w.Name, w.Why)
	}
}
