package placement_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ferry.dev/ferry/internal/placement"
)

var now = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func TestNominate(t *testing.T) {
	all := []string{"w1", "w2", "w3", "w4", "w5"}
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	home := placement.AtHome{Home: "w3", Patience: 10 * time.Second, Then: placement.AllAtOnce{}}
	by2 := placement.Incremental{StepSize: 2, Round: time.Minute}
	for name, c := range map[string]struct {
		p     placement.Placement
		in    placement.Input
		want  []string
		again time.Duration
	}{
		"AllAtOnce: everybody":                 {placement.AllAtOnce{}, placement.Input{Eligible: all}, all, 0},
		"AllAtOnce: nobody":                    {placement.AllAtOnce{}, placement.Input{}, nil, 0},
		"AllAtOnce: a late one comes last":     {placement.AllAtOnce{}, placement.Input{Eligible: all[:3], Kept: []string{"w2", "w3"}}, []string{"w2", "w3", "w1"}, 0},
		"AllAtOnce: out of reach stays":        {placement.AllAtOnce{}, placement.Input{Eligible: []string{"w1"}, Kept: []string{"w1", "w9"}}, []string{"w1", "w9"}, 0},
		"Incremental: first batch":             {by2, placement.Input{Eligible: all, NominatedAt: now}, all[:2], 0},
		"Incremental: within the round":        {by2, placement.Input{Eligible: all, Kept: all[:2], NominatedAt: ago(20 * time.Second)}, all[:2], 40 * time.Second},
		"Incremental: the round is over":       {by2, placement.Input{Eligible: all, Kept: all[:2], NominatedAt: ago(time.Minute)}, all[:4], 0},
		"Incremental: the rest":                {by2, placement.Input{Eligible: all, Kept: all[:4], NominatedAt: ago(time.Hour)}, all, 0},
		"Incremental: everybody is asked":      {by2, placement.Input{Eligible: all, Kept: all, NominatedAt: now}, all, 0},
		"Incremental: nobody is left":          {by2, placement.Input{Eligible: all, NominatedAt: now, Nominated: []string{"w9"}}, all[:2], 0},
		"Incremental: a step is at least one":  {placement.Incremental{Round: time.Minute}, placement.Input{Eligible: all}, all[:1], 0},
		"Incremental: skips who is not fit":    {by2, placement.Input{Eligible: []string{"w2", "w4", "w5"}}, []string{"w2", "w4"}, 0},
		"AtHome: home first":                   {home, placement.Input{Eligible: all}, []string{"w3"}, 0},
		"AtHome: home has some time":           {home, placement.Input{Eligible: all, Kept: []string{"w3"}, NominatedAt: ago(time.Second)}, []string{"w3"}, 9 * time.Second},
		"AtHome: then everybody":               {home, placement.Input{Eligible: all, Kept: []string{"w3"}, NominatedAt: ago(time.Minute)}, []string{"w3", "w1", "w2", "w4", "w5"}, 0},
		"AtHome: home cannot":                  {home, placement.Input{Eligible: all[:2]}, all[:2], 0},
		"AtHome: home can now":                 {home, placement.Input{Eligible: all, Kept: all[:2], NominatedAt: ago(time.Minute)}, []string{"w3", "w1", "w2"}, 0},
		"AtHome: another controller decides":   {placement.AtHome{Home: "w3", Then: placement.External{}}, placement.Input{Eligible: all}, nil, 0},
		"External: what is there":              {placement.External{}, placement.Input{Eligible: all, Kept: all[:1], Nominated: []string{"w3", "w9"}}, []string{"w3", "w9"}, 0},
		"External: nothing, so nothing to add": {placement.External{}, placement.Input{Eligible: all}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Now = now
			out := c.p.Nominate(c.in)
			if !slices.Equal(out.Nominate, c.want) || out.Again != c.again {
				t.Errorf("got %v, again in %s; want %v, %s", out.Nominate, out.Again, c.want, c.again)
			}
		})
	}
}

func TestByName(t *testing.T) {
	for name, want := range map[string]placement.Placement{
		"":                        placement.AllAtOnce{},
		placement.AllAtOnceName:   placement.AllAtOnce{},
		placement.IncrementalName: placement.Incremental{StepSize: 4, Round: time.Minute},
		placement.BestName:        placement.Best{AtOnce: 2},
		"example.com/mine":        placement.External{},
	} {
		if got := placement.ByName(name, placement.Incremental{StepSize: 4, Round: time.Minute}, placement.Best{AtOnce: 2}); got != want {
			t.Errorf("%q gives %#v, want %#v", name, got, want)
		}
	}
}

// names draws some of w1…w6 in their order.
func names(t *rapid.T, label string) []string {
	var some []string
	for _, name := range []string{"w1", "w2", "w3", "w4", "w5", "w6"} {
		if rapid.Bool().Draw(t, label+" "+name) {
			some = append(some, name)
		}
	}
	return some
}

// TestPromises: what is kept stays, nobody unfit is added, nobody twice, and the input is left alone.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := placement.Input{
			Now: now, Eligible: names(t, "eligible"), Kept: names(t, "kept"),
			NominatedAt: now.Add(-time.Duration(rapid.IntRange(-10, 120).Draw(t, "age")) * time.Second),
		}
		in.Nominated = in.Kept
		kept, eligible := slices.Clone(in.Kept), slices.Clone(in.Eligible)
		step := rapid.IntRange(-1, 4).Draw(t, "step")
		for _, p := range []placement.Placement{placement.AllAtOnce{}, placement.Incremental{StepSize: step, Round: time.Minute}, placement.External{}} {
			out := p.Nominate(in)
			if !slices.Equal(in.Kept, kept) || !slices.Equal(in.Eligible, eligible) {
				t.Fatalf("%T changed its input", p)
			}
			if len(out.Nominate) < len(kept) || !slices.Equal(out.Nominate[:len(kept)], kept) {
				t.Fatalf("%T: kept %v, nominates %v", p, kept, out.Nominate)
			}
			added := out.Nominate[len(kept):]
			for i, name := range added {
				if !slices.Contains(eligible, name) || slices.Contains(kept, name) || slices.Contains(added[:i], name) {
					t.Fatalf("%T: eligible %v, kept %v, adds %v", p, eligible, kept, added)
				}
			}
			if !slices.IsSorted(added) {
				t.Fatalf("%T adds %v, not in the config's order", p, added)
			}
			if _, incremental := p.(placement.Incremental); incremental && len(added) > max(step, 1) {
				t.Fatalf("Incremental adds %d at once, the step is %d", len(added), step)
			}
			if out.Again < 0 || (out.Again > 0 && len(added) > 0) {
				t.Fatalf("%T adds %v and asks again in %s", p, added, out.Again)
			}
		}
	})
}

// TestIncrementalAsksEverybody: round by round every eligible worker gets the job.
func TestIncrementalAsksEverybody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		eligible := names(t, "eligible")
		p := placement.Incremental{StepSize: rapid.IntRange(1, 4).Draw(t, "step"), Round: time.Minute}
		in := placement.Input{Now: now, Eligible: eligible, NominatedAt: now}
		for rounds := 0; ; rounds++ {
			out := p.Nominate(in)
			if slices.Equal(out.Nominate, in.Kept) && out.Again == 0 {
				break
			}
			if rounds > 2*len(eligible) {
				t.Fatalf("not at its end after %d rounds: %v", rounds, out.Nominate)
			}
			if out.Again == 0 {
				in.Kept, in.Nominated, in.NominatedAt = out.Nominate, out.Nominate, in.Now
			}
			in.Now = in.Now.Add(out.Again)
		}
		if !slices.Equal(in.Kept, eligible) {
			t.Fatalf("asked %v, want %v", in.Kept, eligible)
		}
	})
}
