package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var noQuota = Rule{
	Name: "NoQuota",
	Doc:  "The Workload has no quota on the manager (not yet, or no longer): every worker removes its copy.",
	decide: func(v *view, p *Plan) bool {
		if !v.any(lacksQuota) {
			return false
		}
		p.Because = "The job waits for quota on the manager"
		v.removeFromAllBut(p)
		v.sayAfterEviction(p)
		v.showStopped(p)
		v.sayStuck(p)
		return true
	},
}

func lacksQuota(wl *kueue.Workload) bool {
	if isTrue(wl, kueue.WorkloadFinished) {
		return false
	}
	return Reservation(wl) == "" || wl.Status.Admission == nil || !wl.DeletionTimestamp.IsZero()
}

// sayAfterEviction tells what a job waits for that was sent back to its queue: Kueue leaves its words about the reset in
// the check. A job that was never admitted has its Workload's own condition.
func (v *view) sayAfterEviction(p *Plan) {
	for _, wl := range v.Workloads {
		c := v.check(wl)
		if c == nil || c.State != kueue.CheckStatePending || c.Message == "" || Evictions(wl) == 0 || isTrue(wl, kueue.WorkloadEvicted) || !lacksQuota(wl) {
			continue
		}
		before, why := c.Message, ""
		if _, told, found := strings.Cut(before, reason.Before); found {
			before = told
		}
		if r := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved); r != nil && isMisplaced(r.Reason) {
			why = r.Message
		}
		v.sayOf(p, wl, reason.WaitsForQuota(why, before))
	}
}

// isMisplaced tells whether a Workload waits for people rather than for its turn. Other words of Kueue have numbers,
// which would make every scheduling cycle a write.
func isMisplaced(reason string) bool {
	return reason == kueue.WorkloadInadmissible || reason == kueue.WorkloadQuotaReservedReasonMisconfigured
}
