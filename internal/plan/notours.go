package plan

import kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

var notOurs = Rule{
	Name: "NotOurs",
	Doc:  "No Workload of the job has a MultiKueue admission check (or there is no Workload yet): nothing of it belongs on a worker. A job that a worker runs already stays there and is mirrored to its end: its queue was changed meanwhile.",
	decide: func(v *view, p *Plan) bool {
		if v.Check != "" && len(v.Workloads) > 0 {
			return false
		}
		p.Because = "The job has no MultiKueue admission check"
		w := v.find(v.claim())
		if w == nil || v.any(lacksQuota) || v.any(func(wl *kueue.Workload) bool { return isTrue(wl, kueue.WorkloadEvicted) }) {
			v.removeFromAllBut(p)
			return true
		}
		v.removeFromAllBut(p, w.Name)
		v.mirrorAll(p, w)
		return true
	},
}
