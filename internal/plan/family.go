package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/reason"
)

const (
	// familyWaits is how long a job lets an earlier one of its family choose first.
	familyWaits = 10 * time.Second
	// homePatience is how long the worker where a job's family runs is asked alone.
	homePatience = 10 * time.Second
)

var waitForFamily = Rule{
	Name: "WaitForFamily",
	Doc:  "The pods of a Deployment go to one worker where they fit: the first of them chooses it, the others wait for that, but not for long.",
	decide: func(v *view, p *Plan) bool {
		if v.Family.Home != "" || v.Family.Earlier == "" || len(v.nominees()) > 0 || v.Policy.Placement == (placement.External{}) {
			return false
		}
		var since time.Time
		for _, wl := range v.Workloads {
			if reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved); reserved.LastTransitionTime.After(since) {
				since = reserved.LastTransitionTime.Time
			}
		}
		if !since.Add(familyWaits).After(v.Now) {
			return false
		}
		v.say(p, reason.WaitsForFamily(v.Family.Earlier))
		p.again(since.Add(familyWaits).Sub(v.Now))
		p.again(v.Family.Until.Sub(v.Now))
		return true
	},
}

// placement is the configured one, beginning with the worker where the job's family is.
func (v *view) placement() placement.Placement {
	if v.Family.Home == "" || !slices.ContainsFunc(v.Workers, func(w Worker) bool { return w.Name == v.Family.Home }) {
		return v.Policy.Placement
	}
	return placement.AtHome{Home: v.Family.Home, Patience: homePatience, Then: v.Policy.Placement}
}
