package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var outOfSync = Rule{
	Name: "OutOfSync",
	Doc:  "Kueue on the worker ended the copy because its job differs (a webhook there changed it): that is no result. The copy goes; the worker that held the claim loses it, with a warning.",
	decide: func(v *view, p *Plan) bool {
		ended := false
		for i := range v.Workers {
			w := &v.Workers[i]
			if !w.Reachable || !v.concerns(w) || !endedWithoutResult(w, v.claim()) {
				continue
			}
			ended = true
			if v.claim() == w.Name {
				v.retry(p, reason.OutOfSync(w.Name), true)
			} else {
				p.Because = reason.OutOfSync(w.Name)
				v.removeFrom(p, w)
			}
		}
		return ended
	},
}

// endedWithoutResult: a copy that never had a job has no result either, whatever it says.
func endedWithoutResult(w *Worker, claim string) bool {
	for _, c := range w.Workloads {
		f := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadFinished)
		if f != nil && f.Status == metav1.ConditionTrue && (w.Name != claim || f.Reason == kueue.WorkloadFinishedReasonOutOfSync) {
			return true
		}
	}
	return false
}
