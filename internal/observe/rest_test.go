package observe

import (
	"testing"
	"time"

	"ferry.dev/ferry/internal/plan"
)

// TestRests: each failure on a worker rests longer than the one before; what went well for long is forgiven.
func TestRests(t *testing.T) {
	strict, lenient := plan.Rest{Why: "x"}, plan.Rest{Why: "x", Lenient: true}
	type failure struct {
		plan.Rest
		after time.Duration // since the last rest was over
	}
	for name, c := range map[string]struct {
		failures []failure
		want     time.Duration
	}{
		"none":                  {nil, 0},
		"one":                   {[]failure{{strict, 0}}, restsFor},
		"two":                   {[]failure{{strict, 0}, {strict, time.Second}}, 2 * restsFor},
		"many":                  {[]failure{{strict, 0}, {strict, 0}, {strict, 0}, {strict, 0}, {strict, 0}, {strict, 0}, {strict, 0}}, restsMost},
		"one that may happen":   {[]failure{{lenient, 0}}, 0},
		"that happens again":    {[]failure{{lenient, 0}, {lenient, time.Minute}}, restsFor},
		"and again":             {[]failure{{lenient, 0}, {lenient, time.Minute}, {lenient, time.Minute}}, 2 * restsFor},
		"one now and then":      {[]failure{{lenient, 0}, {lenient, time.Hour}, {lenient, time.Hour}}, 0},
		"a long time after one": {[]failure{{strict, 0}, {strict, 0}, {strict, time.Hour}}, restsFor},
	} {
		m, now := NewMemory(), start
		for _, f := range c.failures {
			now = now.Add(m.noteOn("w1", train).rest.lasts + f.after)
			m.Rest("w1", train, f.Rest, now)
		}
		r, rests := m.resting("w1", train, now)
		if got := r.until.Sub(now); rests != (c.want > 0) || rests && got != c.want {
			t.Errorf("%s: rests for %s, want %s", name, got, c.want)
		}
		if _, other := m.resting("w2", train, now); other {
			t.Errorf("%s: another worker rests too", name)
		}
		if _, rests := m.resting("w1", train, now.Add(c.want)); rests {
			t.Errorf("%s: it is not over in time", name)
		}
	}
}

// TestClaimedSince counts from when this process saw the claim, and anew for every claim.
func TestClaimedSince(t *testing.T) {
	m := NewMemory()
	for i, c := range []struct {
		worker string
		at     time.Duration
		want   time.Time
	}{
		{"", 0, time.Time{}},
		{"w1", time.Second, start.Add(time.Second)},
		{"w1", time.Minute, start.Add(time.Second)},
		{"w2", 2 * time.Minute, start.Add(2 * time.Minute)},
		{"", 3 * time.Minute, time.Time{}},
		{"w2", 4 * time.Minute, start.Add(4 * time.Minute)},
	} {
		if got := m.claimedSince(train, c.worker, start.Add(c.at)); !got.Equal(c.want) {
			t.Errorf("%d: since %s, want %s", i, got, c.want)
		}
	}
}

// TestTrouble: what does not go through is news once, and in other words only after a while.
func TestTrouble(t *testing.T) {
	m := NewMemory()
	if !m.Failed("w1", train, "delete Job train", "forbidden", start) || m.Failed("w1", train, "delete Job train", "forbidden", start) {
		t.Error("a refusal is news once")
	}
	if !m.Failed("w1", train, "edit Job train", "down", start) {
		t.Error("another write is news by itself")
	}
	if m.Failed("w1", train, "edit Job train", "down on port 2", start.Add(time.Second)) || !m.Failed("w1", train, "edit Job train", "down on port 3", start.Add(time.Minute)) {
		t.Error("other words are news after a while only")
	}
	if got := m.troubleOf("w1", train); got != "forbidden" {
		t.Errorf("trouble is %q", got)
	}
	m.Went("w1", train, "edit Job train")
	if got := m.troubleOf("w1", train); got != "down on port 3" {
		t.Errorf("what went through is remembered: %q", got)
	}
	m.Went("w1", train)
	if got := m.troubleOf("w1", train); got != "" || len(m.read(train).on) > 0 {
		t.Errorf("trouble is %q", got)
	}
}
