package app

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWakerWakesOnceForAll: changes that come together cost one pass, and one that comes later is not lost.
func TestWakerWakesOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		w := &waker{do: func() { woken++ }}
		for _, want := range []int{1, 2} {
			for range 100 {
				w.poke()
			}
			time.Sleep(2 * wakeEvery)
			synctest.Wait()
			if woken != want {
				t.Errorf("woken %d times, want %d", woken, want)
			}
		}
	})
}
