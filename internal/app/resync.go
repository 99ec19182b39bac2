package app

import (
	"context"
	"time"

	"ferry.dev/ferry/internal/kinds"
)

// resync is the safety net: in each period everything is decided anew, a few jobs at a time and after all that is
// fresh. One look at a job is enough for all workers: dispatch tells those lanes that the plan has work for.
type resync struct {
	*wiring
	every time.Duration
}

// portions is in how many parts a period's looks are made.
const portions = 60

// NeedLeaderElection is true, as for those whom it queues for.
func (r *resync) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (r *resync) Start(ctx context.Context) error {
	if r.every <= 0 {
		return nil
	}
	tick := time.NewTicker(max(r.every/portions, time.Millisecond))
	defer tick.Stop()
	var due []kinds.Ref
	for left := 0; ; left-- {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if left == 0 {
			left, due = portions, r.all(ctx)
		}
		n := portion(len(due), left)
		r.in.AddLow(due[:n]...)
		due = due[n:]
	}
}

// portion is how many of those that are due to take now, so that none is left after the given number of portions.
func portion(due, left int) int { return (due + left - 1) / left }

// all are the jobs that are not finished, and those that a worker holds something of: what a lost event may have left.
func (r *resync) all(ctx context.Context) []kinds.Ref {
	refs := r.dispatch.Unfinished(ctx)
	for _, name := range r.fleet.Workers() {
		refs = append(refs, r.held(ctx, name)...)
	}
	seen := make(map[kinds.Ref]bool, len(refs))
	unique := refs[:0]
	for _, ref := range refs {
		if !seen[ref] {
			seen[ref] = true
			unique = append(unique, ref)
		}
	}
	return unique
}
