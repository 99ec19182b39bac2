package placement_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/placement"
)

var byFit = placement.Best{AtOnce: 1, After: 30 * time.Second, Weights: placement.Weights{Fits: 100, Free: 10, Preferred: 20, RanThere: 5}}

func fit(class capacity.Class, free float64) placement.Candidate {
	return placement.Candidate{Fit: capacity.Fit{Class: class, Free: free}}
}

// asking is what Best looks at, so long after the last nomination.
func asking(ago time.Duration, kept []string, of map[string]placement.Candidate) placement.Input {
	in := placement.Input{Now: now, NominatedAt: now.Add(-ago), Kept: kept, Nominated: kept, Of: func(name string) placement.Candidate { return of[name] }}
	for _, name := range []string{"w1", "w2", "w3"} {
		if _, known := of[name]; known {
			in.Eligible = append(in.Eligible, name)
		}
	}
	return in
}

func TestBest(t *testing.T) {
	prefers, was := fit(capacity.FitsNominal, 0.1), fit(capacity.FitsNominal, 0.5)
	prefers.Preferred, was.RanThere = 1, true
	reserved := fit(capacity.FitsLater, 0)
	reserved.Reserved = true
	soon, late := fit(capacity.FitsLater, 0), fit(capacity.FitsLater, 0)
	soon.Fit.Wait, late.Fit.Wait = time.Minute, time.Hour
	type of = map[string]placement.Candidate
	for name, c := range map[string]struct {
		in    placement.Input
		want  []string
		again time.Duration
	}{
		"nominal before borrowing":          {in: asking(0, nil, of{"w1": fit(capacity.FitsBorrowing, 0.9), "w2": fit(capacity.FitsNominal, 0)}), want: []string{"w2"}},
		"borrowing before preempting":       {in: asking(0, nil, of{"w1": fit(capacity.FitsPreempting, 0.9), "w2": fit(capacity.FitsBorrowing, 0)}), want: []string{"w2"}},
		"preempting before waiting":         {in: asking(0, nil, of{"w1": soon, "w2": fit(capacity.FitsPreempting, 0)}), want: []string{"w2"}},
		"more left":                         {in: asking(0, nil, of{"w1": fit(capacity.FitsNominal, 0.2), "w2": fit(capacity.FitsNominal, 0.6)}), want: []string{"w2"}},
		"what the job prefers":              {in: asking(0, nil, of{"w1": fit(capacity.FitsNominal, 0.9), "w2": prefers}), want: []string{"w2"}},
		"where it ran":                      {in: asking(0, nil, of{"w1": fit(capacity.FitsNominal, 0.9), "w2": was}), want: []string{"w2"}},
		"equals, in the config's order":     {in: asking(0, nil, of{"w1": fit(capacity.Unknown, 0), "w2": fit(capacity.Unknown, 0)}), want: []string{"w1"}},
		"the shorter wait":                  {in: asking(0, nil, of{"w1": late, "w2": soon}), want: []string{"w2"}},
		"never fits":                        {in: asking(0, nil, of{"w1": fit(capacity.NeverFits, 0), "w2": late}), want: []string{"w2"}},
		"nobody ever":                       {in: asking(0, nil, of{"w1": fit(capacity.NeverFits, 0)})},
		"has room and time":                 {in: asking(10*time.Second, []string{"w1"}, of{"w1": fit(capacity.FitsNominal, 0), "w2": fit(capacity.FitsNominal, 0)}), want: []string{"w1"}, again: 20 * time.Second},
		"has room, and says nothing":        {in: asking(30*time.Second, []string{"w1"}, of{"w1": fit(capacity.FitsNominal, 0), "w2": fit(capacity.FitsNominal, 0)}), want: []string{"w1", "w2"}},
		"another becomes free":              {in: asking(3*time.Second, []string{"w1"}, of{"w1": soon, "w2": fit(capacity.FitsNominal, 0)}), want: []string{"w2"}},
		"another is free, a moment ago":     {in: asking(time.Second, []string{"w1"}, of{"w1": soon, "w2": fit(capacity.FitsNominal, 0)}), want: []string{"w1"}, again: time.Second},
		"it took the job itself":            {in: asking(3*time.Second, []string{"w1"}, of{"w1": reserved, "w2": fit(capacity.FitsNominal, 0)}), want: []string{"w1"}, again: 27 * time.Second},
		"out of reach, another is free":     {in: asking(3*time.Second, []string{"w3"}, of{"w1": fit(capacity.FitsNominal, 0)}), want: []string{"w1"}},
		"nobody is free, one more is asked": {in: asking(time.Minute, []string{"w1"}, of{"w1": soon, "w2": late}), want: []string{"w1", "w2"}},
		"it can never run it any more":      {in: asking(0, []string{"w1"}, of{"w1": fit(capacity.NeverFits, 0), "w2": late}), want: []string{"w2"}},
		"nor can anybody else":              {in: asking(time.Minute, []string{"w1"}, of{"w1": fit(capacity.NeverFits, 0)})},
		"all are asked":                     {in: asking(time.Minute, []string{"w1", "w2"}, of{"w1": soon, "w2": late}), want: []string{"w1", "w2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := byFit.Nominate(c.in)
			if !slices.Equal(got.Nominate, c.want) || got.Again != c.again {
				t.Errorf("asks %v, again in %s; want %v, again in %s", got.Nominate, got.Again, c.want, c.again)
			}
		})
	}
}

// TestBestProperties: it asks no more at first than it may, nobody who cannot run the job, and one who fits now if any
// does; and whoever comes first in the config matters between equals only.
func TestBestProperties(t *testing.T) {
	classes := []capacity.Class{capacity.FitsNominal, capacity.FitsBorrowing, capacity.FitsPreempting, capacity.Unknown, capacity.FitsLater, capacity.NeverFits}
	rapid.Check(t, func(t *rapid.T) {
		of := map[string]placement.Candidate{}
		for i := range rapid.IntRange(0, 6).Draw(t, "workers") {
			c := fit(rapid.SampledFrom(classes).Draw(t, "class"), float64(i)/10) // no two are equal
			of[fmt.Sprintf("w%d", i)] = c
		}
		in := placement.Input{Now: now, NominatedAt: now, Of: func(name string) placement.Candidate { return of[name] }}
		for name := range of {
			in.Eligible = append(in.Eligible, name)
		}
		slices.Sort(in.Eligible)
		b := byFit
		b.AtOnce = rapid.IntRange(1, 3).Draw(t, "at once")
		got := b.Nominate(in).Nominate
		best := capacity.NeverFits
		for _, c := range of {
			best = min(best, c.Fit.Class)
		}
		if len(got) > b.AtOnce || (len(got) == 0) != (best == capacity.NeverFits) {
			t.Fatalf("%v are asked", got)
		}
		if len(got) > 0 && of[got[0]].Fit.Class != best {
			t.Fatalf("%s is asked first, which is %v, and another one is %v", got[0], of[got[0]].Fit.Class, best)
		}
		in.Nominated = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"w0", "w1", "w2", "w7"}), rapid.ID[string]).Draw(t, "kept")
		in.Kept = in.Nominated
		in.NominatedAt = now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "ago")) * time.Second)
		later := b.Nominate(in)
		for _, name := range later.Nominate {
			if c, known := of[name]; known && c.Fit.Class == capacity.NeverFits {
				t.Fatalf("%s is asked or kept, where it never fits", name)
			}
		}
		in.Nominated, in.Kept, in.NominatedAt = nil, nil, now
		slices.Reverse(in.Eligible)
		if again := b.Nominate(in).Nominate; !slices.Equal(got, again) {
			t.Fatalf("%v are asked, and %v with the config the other way round", got, again)
		}
	})
}

// TestScoresAreDocumented: docs/placement.md has the table of scores.
func TestScoresAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/placement.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, s := range placement.Scores() {
		fmt.Fprintf(&table, "| `%s` | %s |\n", s.Name, s.Doc)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/placement.md lacks\n%s", table.String())
	}
}
