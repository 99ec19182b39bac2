// Package capacity predicts what a worker's queues have for a job: values in, a Fit out. Kueue there decides.
package capacity

import "time"

// Class is how well a job fits into a worker's queue; the smaller, the better.
type Class int

// The classes, best first. Unknown is what nothing is known about: it is between those that may admit the job soon and
// those that cannot.
const (
	// FitsNominal: now, within the queue's own nominal quota.
	FitsNominal Class = iota
	// FitsBorrowing: now, with quota of the cohort that nobody uses.
	FitsBorrowing
	// FitsPreempting: once jobs of lower priority or those that borrow have been evicted.
	FitsPreempting
	// Unknown: the worker's queues have not been read.
	Unknown
	// FitsLater: once others end.
	FitsLater
	// NeverFits: it asks for more than the queue can ever have, or for what no flavor has.
	NeverFits
)

// Fit is what a worker's queue has for a job.
type Fit struct {
	Class Class
	// Why is a clause for users, as "6 nvidia.com/gpu free of 8" or "its queue can never have more than 2 cpu".
	Why string
	// Free is the share, from 0 to 1, of the queue's quota that would be left once the job runs there, of the resource
	// that is scarcest.
	Free float64
	// Wait is how long the job is likely to wait there; it counts for FitsLater only.
	Wait time.Duration
}
