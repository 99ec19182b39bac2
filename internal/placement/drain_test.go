package placement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
)

func resident(name string, pods int32, ran time.Duration) placement.Resident {
	return placement.Resident{Job: kinds.Ref{Kind: "Job.batch", Namespace: "a", Name: name}, Pods: pods, Since: now.Add(-ran)}
}

func TestNextToMove(t *testing.T) {
	kept, going := resident("kept", 1, 0), resident("going", 1, 0)
	kept.Keeps, going.Moves = true, true
	on := []placement.Resident{resident("long", 1, time.Hour), kept, resident("wide", 100, time.Minute), resident("new", 1, time.Minute), going, resident("ahead", 1, -time.Minute)}
	for _, c := range []struct {
		onTheirWay, atOnce int
		want               []string
	}{
		{0, 1, []string{"ahead"}}, {0, 3, []string{"ahead", "new", "long"}}, {1, 3, []string{"ahead", "new"}}, {3, 3, nil}, {5, 3, nil}, {0, 9, []string{"ahead", "new", "long", "wide"}},
	} {
		var got []string
		for _, ref := range placement.NextToMove(on, c.onTheirWay, c.atOnce, now) {
			got = append(got, ref.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d on their way, %d at once: %v, want %v", c.onTheirWay, c.atOnce, got, c.want)
		}
	}
}

// TestNextToMoveProperties: never more than asked for, never one that stays or goes already, and in the same order for
// whatever order they come in.
func TestNextToMoveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var on []placement.Resident
		for i := range rapid.IntRange(0, 8).Draw(t, "jobs") {
			r := resident(fmt.Sprint(i), rapid.Int32Range(0, 9).Draw(t, "pods"), time.Duration(rapid.IntRange(0, 9).Draw(t, "ran")))
			r.Keeps, r.Moves = rapid.Bool().Draw(t, "keeps"), rapid.Bool().Draw(t, "moves")
			on = append(on, r)
		}
		way, most := rapid.IntRange(0, 4).Draw(t, "way"), rapid.IntRange(1, 4).Draw(t, "most")
		next := placement.NextToMove(on, way, most, now)
		if way+len(next) > max(most, way) {
			t.Fatalf("%d on their way and %d more, at most %d", way, len(next), most)
		}
		for _, r := range on {
			if (r.Keeps || r.Moves) && slices.Contains(next, r.Job) {
				t.Fatalf("%s is moved", r.Job)
			}
		}
		slices.Reverse(on)
		if again := placement.NextToMove(on, way, most, now); !slices.Equal(next, again) {
			t.Fatalf("in another order %v, not %v", again, next)
		}
	})
}
