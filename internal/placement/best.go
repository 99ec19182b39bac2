package placement

import (
	"cmp"
	"slices"
	"time"

	"ferry.dev/ferry/internal/capacity"
)

// settles is how long a nomination stands at least: what a worker has is seen a moment after it changed.
const settles = 2 * time.Second

// Candidate is what Best knows of a worker beside its name.
type Candidate struct {
	Fit capacity.Fit
	// Preferred is the share, from 0 to 1, of what the job prefers that is true of the worker.
	Preferred float64
	// RanThere tells that the job ran there before, so that caches may be warm.
	RanThere bool
	// Reserved tells that Kueue there has reserved quota for the job by now.
	Reserved bool
}

// Weights say how much each score counts, compared to the others.
type Weights struct{ Fits, Free, Preferred, RanThere float64 }

// Score is one consideration by which workers are compared, from 0 to 1.
type Score struct {
	// Name and Doc are for the documentation.
	Name, Doc string
	of        func(Candidate) float64
	weight    func(Weights) float64
}

// Scores are added up, each with its weight.
func Scores() []Score { return scores }

var scores = []Score{
	{"fits", "1 for a job that fits now in nominal quota, 0.8 by borrowing, 0.4 after preemption, 0.3 where nothing is known, and less the longer it is likely to wait", fits, func(w Weights) float64 { return w.Fits }},
	{"free", "the share of the quota that is left once the job runs, of the resource that is scarcest", func(c Candidate) float64 { return c.Fit.Free }, func(w Weights) float64 { return w.Free }},
	{"preferred", "the share of `ferry.dev/prefer` that is true of the worker's labels", func(c Candidate) float64 { return c.Preferred }, func(w Weights) float64 { return w.Preferred }},
	{"ranThere", "1 where the job ran before", func(c Candidate) float64 {
		if c.RanThere {
			return 1
		}
		return 0
	}, func(w Weights) float64 { return w.RanThere }},
}

func fits(c Candidate) float64 {
	switch c.Fit.Class {
	case capacity.FitsNominal:
		return 1
	case capacity.FitsBorrowing:
		return 0.8
	case capacity.FitsPreempting:
		return 0.4
	case capacity.Unknown:
		return 0.3
	case capacity.FitsLater:
		return 0.2 / (1 + c.Fit.Wait.Hours())
	default:
		return 0
	}
}

// Best asks a few workers at a time, those first that are best for the job. One that has no room any more is replaced as
// soon as another has.
type Best struct {
	// AtOnce is how many are asked at first, After the time until one more is asked besides.
	AtOnce  int
	After   time.Duration
	Weights Weights
}

// Nominate implements Placement.
func (b Best) Nominate(in Input) Output {
	in.Kept = slices.DeleteFunc(slices.Clone(in.Kept), func(name string) bool { return isHopeless(in, name) })
	next := without(b.rank(in), in.Kept)
	switch {
	case len(next) == 0:
		return Output{Nominate: in.Kept}
	case len(in.Kept) == 0:
		return Output{Nominate: next[:min(max(b.AtOnce, 1), len(next))]}
	}
	since := in.Now.Sub(in.NominatedAt)
	if fitsNow(in.Of(next[0])) && !slices.ContainsFunc(in.Kept, func(name string) bool { return mayTake(in, name) }) {
		if since < settles {
			return Output{Nominate: in.Kept, Again: settles - since}
		}
		return Output{Nominate: next[:1]}
	}
	if since < b.After {
		return Output{Nominate: in.Kept, Again: b.After - since}
	}
	return Output{Nominate: union(in.Kept, next[:1])}
}

// rank orders the workers that could ever run the job, the best first; the config's order decides between equals.
func (b Best) rank(in Input) []string {
	points := map[string]float64{}
	ranked := slices.DeleteFunc(slices.Clone(in.Eligible), func(name string) bool { return in.Of(name).Fit.Class == capacity.NeverFits })
	for _, name := range ranked {
		for _, s := range scores {
			points[name] += s.weight(b.Weights) * s.of(in.Of(name))
		}
	}
	slices.SortStableFunc(ranked, func(x, y string) int { return cmp.Compare(points[y], points[x]) })
	return ranked
}

// isHopeless tells whether a worker that is asked can never run the job, as its queue is another one by now.
func isHopeless(in Input, name string) bool {
	c := in.Of(name)
	return c.Fit.Class == capacity.NeverFits && !c.Reserved && slices.Contains(in.Eligible, name)
}

func fitsNow(c Candidate) bool { return c.Fit.Class <= capacity.FitsBorrowing }

// mayTake tells whether a worker that is asked has room, or has given it to this very job. One that is out of reach for
// the moment has none.
func mayTake(in Input, name string) bool {
	c := in.Of(name)
	return c.Reserved || fitsNow(c) && slices.Contains(in.Eligible, name)
}
