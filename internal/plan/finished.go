package plan

import (
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var finished = Rule{
	Name: "Finished",
	Doc:  "The Workload on the manager is finished, so the result is there: every worker removes its copy; the one that ran the job once nothing of it runs there any more, which is waited for a little, and after `afterFinished`, if it ended there.",
	decide: func(v *view, p *Plan) bool {
		if len(v.Workloads) == 0 || !v.all(func(wl *kueue.Workload) bool { return isTrue(wl, kueue.WorkloadFinished) }) {
			return false
		}
		p.Because = "The job is finished"
		v.clearUp(p)
		return true
	},
}
