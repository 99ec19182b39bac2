package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/test/scenario/world"
)

// TestFlapsCostNoWrites: a worker that comes and goes is no news for the jobs that wait, and one that stays away is one write each.
func TestFlapsCostNoWrites(t *testing.T) {
	const jobs = 40
	w := full(jobs, "w1", "w2")
	before := w.Writes
	for range 20 {
		w.Cut("w1")
		w.Notice("w1")
		w.Settle(true, 20*time.Second)
		w.Mend("w1")
		w.Settle(true, 20*time.Second)
	}
	if n := w.Writes - before; n > 0 {
		t.Errorf("20 flips of a worker are %d requests for %d waiting jobs, want none", n, jobs)
	}
	w.Cut("w1")
	w.Notice("w1")
	w.Settle(true, 10*time.Minute)
	if n := w.Writes - before; n != jobs {
		t.Errorf("a worker that stays away is %d writes for %d waiting jobs, want one each", n, jobs)
	}
}

// TestNewsAreWrittenOnceAMinute: what Kueue on a worker says may change all the time.
func TestNewsAreWrittenOnceAMinute(t *testing.T) {
	const jobs = 20
	w := full(jobs, "w1")
	before := w.Writes
	for i := range 60 {
		for job := range jobs {
			w.Explain("w1", fmt.Sprintf("job%d", job), fmt.Sprintf("news %d", i))
		}
		w.Settle(true, 5*time.Second)
		w.Advance(5 * time.Second)
	}
	if n := w.Writes - before; n > 13*jobs {
		t.Errorf("ten minutes of news are %d writes for %d waiting jobs, want one each per minute, and two at first", n, jobs)
	}
}

// full is a world whose workers have no room for the jobs that wait there, all of which have said so.
func full(jobs int, workers ...string) *world.World {
	w := world.New(world.Options{Workers: workers, Dispatcher: placement.AllAtOnceName})
	for _, name := range workers {
		w.Worker(name).Kueue.Capacity = 0
	}
	for i := range jobs {
		_ = w.Submit(fmt.Sprintf("job%d", i), 1)
	}
	w.Settle(true, 10*time.Minute)
	return w
}

// TestEqualAnswersAreSpread: in a burst every worker has answered before the manager's queue comes to a job.
func TestEqualAnswersAreSpread(t *testing.T) {
	const jobs = 24
	workers := []string{"w1", "w2", "w3"}
	w := world.New(world.Options{Workers: workers, Dispatcher: placement.AllAtOnceName, Capacity: jobs})
	for i := range jobs {
		_ = w.Submit(fmt.Sprintf("job%d", i), 1)
	}
	for _, name := range workers {
		w.Held[name] = true
	}
	if !w.Settle(true, 0) {
		t.Fatal("the world comes to no rest")
	}
	clear(w.Held)
	w.Settle(true, time.Minute)
	got := map[string]int{}
	for _, note := range w.Trace(1 << 30) {
		for _, name := range workers {
			if strings.Contains(note, "AdmittedSomewhere, manager [claim") && strings.Contains(note, "for "+name+"]") {
				got[name]++
			}
		}
	}
	for _, name := range workers {
		if got[name] < jobs/6 {
			t.Errorf("%d jobs went to three equally free workers as %v", jobs, got)
			return
		}
	}
}
