package plan

import (
	"slices"

	"ferry.dev/ferry/internal/reason"
)

// noteVolumes tells the user of a set with volume claims, once, that its controller on the manager makes them there too.
func (v *view) noteVolumes(p *Plan) {
	if v.Kind == nil || !v.Kind.Pods || v.Check == "" || len(v.Jobs) == 0 || !isThere(v.Jobs[0]) || !v.Kind.ClaimsVolumes(v.Jobs[0]) {
		return
	}
	if message := reason.VolumesOnManager(v.Kind.GVK.Kind); !slices.Contains(v.Told, message) {
		p.manager(Warn{Jobs: v.Jobs, Message: message})
	}
}
