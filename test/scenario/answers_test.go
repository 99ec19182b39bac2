package scenario

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/world"
)

// handful is how often one request may be made without time passing: three applies of a Workload's status for each of two workers
// that are tried in turn, and some.
const handful = 8

// TestNoAnswersMakeALoop: whatever workers answer, in any mix, Ferry asks for the same thing a handful of times at most
// without time passing, and less and less often while nothing comes of it.
func TestNoAnswersMakeALoop(t *testing.T) {
	for seed := range uint64(*answers) {
		w := answered(seed)
		if w.Most > handful || w.Writes > 600 {
			t.Errorf("world %d: %d requests, %d times at once %q\nlast steps:\n  %s", seed, w.Writes, w.Most, w.MostOf, strings.Join(w.Trace(60), "\n  "))
			return
		}
	}
}

// answered lets users do this and that for an hour while the workers answer as the seed says.
var answers = flag.Int("answers", 30, "how many mixes of answers to try")

func answered(seed uint64) *world.World {
	r := rand.New(rand.NewPCG(seed, 0xa5))
	w := world.New(world.Options{Workers: []string{"w1", "w2"}, Capacity: 10, Rand: r, Dispatcher: placement.AllAtOnceName})
	given := map[string]int{}
	w.Faults.Answer = func(worker, verb string, key cluster.Key) int {
		what := worker + verb + key.Kind
		if _, found := given[what]; !found || r.IntN(10) == 0 {
			given[what] = []int{0, 0, 0, 0, 0, 0, 0, 200, 403, 404, 409, 422, 429, 500}[r.IntN(14)]
		}
		return given[what]
	}
	_, _, _ = w.Submit("job", 1), w.SubmitSet("set", 2), w.SubmitPod("pod", "")
	w.Call("pod", cluster.Pod)
	for range 12 {
		if !w.Settle(true, 5*time.Minute) {
			w.Most, w.MostOf = 20000, "something without end"
			return w
		}
		w.SetPriority("job", r.Int32N(100))
		w.SetPriority("set", r.Int32N(100))
		w.Scale("set", 1+r.Int64N(3))
		clear(given)
		w.Advance(time.Second)
	}
	return w
}
