package plan

var unknownCheck = Rule{
	Name: "UnknownCheck",
	Doc:  "An AdmissionCheck that the Workload names does not exist, so nobody can tell whose it is: nothing happens until it does.",
	decide: func(v *view, p *Plan) bool {
		if v.Check != "" || !v.CheckUnknown {
			return false
		}
		p.Because = "An admission check of the Workload does not exist"
		return true
	},
}
