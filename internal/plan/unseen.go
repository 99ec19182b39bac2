package plan

import "ferry.dev/ferry/internal/reason"

var unseen = Rule{
	Name: "Unseen",
	Doc:  "Jobs of this kind cannot be read on the manager, because its CRD is not installed (yet, or any more) or Ferry may not read it: nobody knows what the job wants, so nothing is made or removed anywhere; the pending check says why.",
	decide: func(v *view, p *Plan) bool {
		if v.Unseen == "" {
			return false
		}
		v.say(p, reason.Unseen(v.Unseen))
		return true
	},
}
