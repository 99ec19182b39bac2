package placement

import (
	"slices"
	"time"
)

// AtHome offers the job to one worker first, and as any other placement does once
// that has not taken it for Patience.
type AtHome struct {
	Home     string
	Patience time.Duration
	Then     Placement
}

// Nominate implements Placement.
func (p AtHome) Nominate(in Input) Output {
	if _, isExternal := p.Then.(External); isExternal || !slices.Contains(in.Eligible, p.Home) {
		return p.Then.Nominate(in)
	}
	if !slices.Contains(in.Kept, p.Home) {
		return Output{Nominate: union([]string{p.Home}, in.Kept)}
	}
	if left := in.NominatedAt.Add(p.Patience).Sub(in.Now); left > 0 {
		return Output{Nominate: in.Kept, Again: left}
	}
	return p.Then.Nominate(in)
}
