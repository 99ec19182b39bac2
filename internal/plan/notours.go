package plan

var notOurs = Rule{
	Name: "NotOurs",
	Doc:  "No Workload of the job has a MultiKueue admission check (or there is no Workload yet): nothing of it belongs on a worker.",
	decide: func(v *view, p *Plan) bool {
		if v.Check != "" {
			return false
		}
		p.Because = "The job has no MultiKueue admission check"
		v.removeFromAllBut(p)
		return true
	},
}
