package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var admittedSomewhere = Rule{
	Name: "AdmittedSomewhere",
	Doc:  "Kueue on a nominated worker admitted the copy: the manager's Workload is assigned to that worker, the one that admitted first; only then anything is placed.",
	decide: func(v *view, p *Plan) bool {
		var winner *Worker
		var first time.Time
		for i := range v.Workers {
			w := &v.Workers[i]
			at, admitted := v.admittedAt(w)
			if admitted && (winner == nil || at.Before(first)) {
				winner, first = w, at
			}
		}
		if winner == nil {
			return false
		}
		p.Because = fmt.Sprintf("Worker %q admitted the job", winner.Name)
		for _, wl := range v.Workloads {
			p.manager(Claim{Workload: wl, Check: v.Check, Worker: winner.Name, Message: reason.Placing(winner.Name)})
		}
		return true
	},
}

// admittedAt tells whether the worker may have the job, and since when it would run it.
func (v *view) admittedAt(w *Worker) (time.Time, bool) {
	var at time.Time
	if !v.eligible(w) || len(v.copies(w)) == 0 {
		return at, false
	}
	for _, c := range v.copies(w) {
		admitted := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadAdmitted)
		if !isTrue(c, kueue.WorkloadAdmitted) || isTrue(c, kueue.WorkloadEvicted) || isTrue(c, kueue.WorkloadFinished) ||
			!c.DeletionTimestamp.IsZero() || !slices.Contains(v.original(c.Name).Status.NominatedClusterNames, w.Name) {
			return at, false
		}
		if admitted.LastTransitionTime.After(at) {
			at = admitted.LastTransitionTime.Time
		}
	}
	return at, true
}
