package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var waitForChecks = Rule{
	Name: "WaitForChecks",
	Doc:  "Other admission checks of the Workload are not Ready: no worker is asked before they are.",
	decide: func(v *view, p *Plan) bool {
		var waiting []string
		for _, wl := range v.Workloads {
			waiting = append(waiting, v.waitsFor(wl)...)
		}
		if len(waiting) == 0 {
			return false
		}
		v.removeFromAllBut(p)
		v.say(p, reason.WaitsForChecks(waiting))
		return true
	},
}

// waitsFor names the other checks of a Workload that are not Ready.
func (v *view) waitsFor(wl *kueue.Workload) []string {
	var waiting []string
	for _, c := range wl.Status.AdmissionChecks {
		if c.Name != v.Check && c.State != kueue.CheckStateReady {
			waiting = append(waiting, string(c.Name))
		}
	}
	return waiting
}
