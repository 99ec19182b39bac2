package plan

import "ferry.dev/ferry/internal/reason"

var waitForCleanup = Rule{
	Name: "WaitForCleanup",
	Doc:  "The job of an earlier reservation may still run on a reachable worker: nobody is asked until it is gone, lest the job runs twice.",
	decide: func(v *view, p *Plan) bool {
		if len(v.nominees()) > 0 {
			// A worker that came back with an old copy does not hold up a race that is on.
			return false
		}
		var busy []string
		for _, w := range v.Workers {
			if w.Reachable && v.mayRun[w.Name] {
				busy = append(busy, w.Name)
			}
		}
		if len(busy) == 0 {
			return false
		}
		v.say(p, reason.WaitsForCleanup(busy))
		return true
	},
}
