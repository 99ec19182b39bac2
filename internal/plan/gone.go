package plan

var gone = Rule{
	Name: "Gone",
	Doc:  "The job is deleted on the manager: every worker removes what it has of it.",
	decide: func(v *view, p *Plan) bool {
		if v.Kind == nil || (v.Job != nil && v.Job.GetDeletionTimestamp().IsZero()) {
			return false
		}
		p.Because = "The job is gone from the manager"
		v.removeFromAllBut(p)
		return true
	},
}
