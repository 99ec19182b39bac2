package plan

var over = Rule{
	Name: "Over",
	Doc:  "The job's status on the manager says that it is over, but its Workload is not finished yet: it never runs again. A pod group is over only when Kueue takes it so: pods that failed may be replaced. Every worker removes its copy, as with Finished, and Kueue on the manager finishes the Workload.",
	decide: func(v *view, p *Plan) bool {
		if !v.allEnded(v.Jobs) || !v.Kind.Whole(v.Jobs) {
			return false
		}
		p.Because = "The job is over"
		v.clearUp(p)
		return true
	},
}
