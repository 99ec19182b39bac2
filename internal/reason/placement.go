package reason

import (
	"fmt"
	"strings"

	"ferry.dev/ferry/internal/capacity"
)

// MeetsNobody says that what was asked of a worker is true of none.
func MeetsNobody(demands string, workers []string) string {
	return fmt.Sprintf("The job may go nowhere: no worker of the MultiKueueConfig (%s) meets %s", strings.Join(workers, ", "), demands)
}

// WorkerDrains says that the job makes room on a worker that is being drained.
func WorkerDrains(worker string) string {
	return fmt.Sprintf("Worker %q is being drained; offering the job to the others", worker)
}

// DrainProgress says how far a worker is drained.
func DrainProgress(left, onTheirWay, kept int) string {
	if left+onTheirWay == 0 {
		return "No job is left"
	}
	return fmt.Sprintf("Jobs that are left: %d; kept to their end by ferry.dev/keep: %d; on their way to another worker: %d", left, kept, onTheirWay)
}

// Fits says how well a job fits into a worker's queue, in words that seldom change: numbers would be another write for
// each job that waits whenever anything ends there.
func Fits(f capacity.Fit) string {
	switch f.Class {
	case capacity.FitsNominal:
		return "fits now"
	case capacity.FitsBorrowing:
		return "fits now, by borrowing"
	case capacity.FitsPreempting:
		return "fits after preemption"
	case capacity.FitsLater:
		return "fits once others end"
	case capacity.NeverFits:
		return withWhy("never fits", f.Why)
	default:
		return "what its queue has is not known"
	}
}
