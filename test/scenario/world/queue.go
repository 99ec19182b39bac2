package world

import (
	"slices"
	"time"

	"ferry.dev/ferry/internal/kinds"
)

// queue is a controller's work queue: each job at most once, some only later.
type queue struct {
	ready   []kinds.Ref
	delayed []delayed
	failed  map[kinds.Ref]int
}

type delayed struct {
	ref kinds.Ref
	at  time.Time
}

func newQueue() *queue { return &queue{failed: map[kinds.Ref]int{}} }

func (q *queue) add(ref kinds.Ref) {
	if !slices.Contains(q.ready, ref) {
		q.ready = append(q.ready, ref)
	}
}

func (q *queue) addAt(ref kinds.Ref, at time.Time) {
	for i, d := range q.delayed {
		if d.ref == ref {
			if at.Before(d.at) {
				q.delayed[i].at = at
			}
			return
		}
	}
	q.delayed = append(q.delayed, delayed{ref, at})
}

// wake moves what is due into the queue.
func (q *queue) wake(now time.Time) {
	q.delayed = slices.DeleteFunc(q.delayed, func(d delayed) bool {
		due := !now.Before(d.at)
		if due {
			q.add(d.ref)
		}
		return due
	})
}

// next is when the first delayed job is due; zero when none is.
func (q *queue) next() time.Time {
	var first time.Time
	for _, d := range q.delayed {
		if first.IsZero() || d.at.Before(first) {
			first = d.at
		}
	}
	return first
}

func (q *queue) take(i int) kinds.Ref {
	ref := q.ready[i]
	q.ready = slices.Delete(q.ready, i, i+1)
	return ref
}

// backOff is how long a job waits that failed again, as controller-runtime has it.
func (q *queue) backOff(ref kinds.Ref) time.Duration {
	q.failed[ref]++
	return min(5*time.Millisecond<<min(q.failed[ref], 16), 1000*time.Second)
}
