// Package placement decides which workers a job is offered to: whom filters leave, and how many at once. It decides on values: state in, names out.
package placement

import (
	"slices"
	"time"
)

// Dispatcher names, as in Kueue's configuration.
const (
	AllAtOnceName   = "kueue.x-k8s.io/multikueue-dispatcher-all-at-once"
	IncrementalName = "kueue.x-k8s.io/multikueue-dispatcher-incremental"
	// BestName is that of Ferry's own, which goes by what the workers' queues have.
	BestName = "ferry.dev/dispatcher-best"
)

// DispatcherAnnotation on a MultiKueueConfig names the dispatcher of its queues, in place of the configured one.
const DispatcherAnnotation = "ferry.dev/dispatcher"

// Input is what a placement may look at.
type Input struct {
	Now time.Time
	// Eligible are the workers that could run the job now, in the config's order.
	Eligible []string
	// Kept are the nominated workers that may stay so: the eligible ones, and
	// those out of reach for the moment, in the order of their nomination.
	Kept []string
	// Nominated are the names persisted in the Workload.
	Nominated []string
	// NominatedAt is when Nominated was last changed.
	NominatedAt time.Time
	// Of tells what is known of a worker; only Best asks.
	Of func(worker string) Candidate
}

// Output is who should be nominated, and when to ask again without an event; zero: no need.
type Output struct {
	Nominate []string
	Again    time.Duration
}

// Placement decides on a nomination.
type Placement interface {
	Nominate(Input) Output
}

// AllAtOnce offers the job to every worker that could run it.
type AllAtOnce struct{}

// Nominate implements Placement.
func (AllAtOnce) Nominate(in Input) Output {
	return Output{Nominate: union(in.Kept, in.Eligible)}
}

// Incremental offers the job to the next StepSize workers of the config's
// order every Round, beside those that already have it.
type Incremental struct {
	StepSize int
	Round    time.Duration
}

// Nominate implements Placement.
func (p Incremental) Nominate(in Input) Output {
	next := without(in.Eligible, in.Kept)
	if len(next) == 0 {
		return Output{Nominate: in.Kept}
	}
	if len(in.Kept) > 0 {
		if left := in.NominatedAt.Add(p.Round).Sub(in.Now); left > 0 {
			return Output{Nominate: in.Kept, Again: left}
		}
	}
	return Output{Nominate: union(in.Kept, next[:min(max(p.StepSize, 1), len(next))])}
}

// External leaves the nomination to another controller.
type External struct{}

// Nominate implements Placement.
func (External) Nominate(in Input) Output { return Output{Nominate: in.Nominated} }

// ByName returns the placement for a dispatcher name; any name that is not
// Ferry's own is another controller's.
func ByName(name string, incremental Incremental, best Best) Placement {
	switch name {
	case AllAtOnceName, "":
		return AllAtOnce{}
	case IncrementalName:
		return incremental
	case BestName:
		return best
	default:
		return External{}
	}
}

func union(first, second []string) []string {
	out := slices.Clone(first)
	for _, name := range second {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func without(all, some []string) []string {
	var out []string
	for _, name := range all {
		if !slices.Contains(some, name) {
			out = append(out, name)
		}
	}
	return out
}
