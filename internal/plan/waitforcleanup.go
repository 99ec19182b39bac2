package plan

import (
	"slices"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// firstLook is how long a worker that Ferry has just started to connect to gets
// to show what it holds.
const firstLook = 30 * time.Second

var waitForCleanup = Rule{
	Name: "WaitForCleanup",
	Doc:  "The job of an earlier reservation may still run on a reachable worker: nobody is asked until it is gone, lest the job runs twice, but for workerLostTimeout at most. Only the word of a worker counts that the config names, that was seen with the claim, or that was offered this very job. The same holds, for a short while, for a worker that Ferry has not seen since it started, if the job ran somewhere before.",
	decide: func(v *view, p *Plan) bool {
		if slices.ContainsFunc(v.Workers, func(w Worker) bool { return w.InConfig && len(w.Workloads) > 0 }) {
			// A worker that came back with an old copy does not hold up a race that is on.
			return false
		}
		var busy []string
		for i := range v.Workers {
			w := &v.Workers[i]
			held, left := v.holdsUp(w), w.LostSince.Add(firstLook).Sub(v.Now)
			switch {
			case v.mayRun[w.Name] && held > 0:
				busy = append(busy, reason.WithTrouble(w.Name, w.Trouble))
				p.again(held)
			case v.isHeldOn(w):
				busy = append(busy, reason.HeldThere(w.Name, v.heldBy(w)))
				p.Held = true
			case !w.Reachable && w.InConfig && v.Host == "" && left > 0 && v.any(wasEvicted):
				busy = append(busy, w.Name)
				p.again(left)
			}
		}
		if len(busy) == 0 {
			return false
		}
		v.say(p, reason.WaitsForCleanup(busy))
		return true
	},
}

func wasEvicted(wl *kueue.Workload) bool { return Evictions(wl) > 0 }
