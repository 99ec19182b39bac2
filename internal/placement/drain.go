package placement

import (
	"cmp"
	"slices"
	"time"

	"ferry.dev/ferry/internal/kinds"
)

// KeepAnnotation on a job lets it end on a worker that is being drained.
const KeepAnnotation = "ferry.dev/keep"

// Resident is a job that runs on a worker which is being drained.
type Resident struct {
	Job kinds.Ref
	// Pods is how many pods it has, Since how long it has run.
	Pods  int32
	Since time.Time
	// Keeps tells that it is to end there; Moves, that it has been told to go.
	Keeps, Moves bool
}

// NextToMove are the jobs to move now, so that with those on their way there are at most so many: those first that lose
// the least work by it, which is their time for all of their pods.
func NextToMove(on []Resident, onTheirWay, atOnce int, now time.Time) []kinds.Ref {
	movable := slices.DeleteFunc(slices.Clone(on), func(r Resident) bool { return r.Keeps || r.Moves })
	slices.SortFunc(movable, func(a, b Resident) int {
		return cmp.Or(cmp.Compare(a.work(now), b.work(now)), cmp.Compare(a.Job.String(), b.Job.String()))
	})
	var next []kinds.Ref
	for _, r := range movable[:min(len(movable), max(atOnce-onTheirWay, 0))] {
		next = append(next, r.Job)
	}
	return next
}

func (r Resident) work(now time.Time) time.Duration {
	return max(now.Sub(r.Since), 0) * time.Duration(max(r.Pods, 1))
}
