package app

import (
	"sync/atomic"
	"time"
)

const (
	// wakeEvery is the least time between two times that jobs are woken because workers have more to give.
	wakeEvery = 300 * time.Millisecond
	// wakeMost is how many are woken at a time: the first in line. Those behind them wait for what these leave.
	wakeMost = 50
)

// waker does something soon after it was poked, once for all pokes until then.
type waker struct {
	do      func()
	pending atomic.Bool
}

func (w *waker) poke() {
	if w.pending.CompareAndSwap(false, true) {
		time.AfterFunc(wakeEvery, func() {
			w.pending.Store(false) // before: what changes from now on needs another look
			w.do()
		})
	}
}
