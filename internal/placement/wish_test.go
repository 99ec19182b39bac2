package placement_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ferry.dev/ferry/internal/placement"
)

func TestExcludes(t *testing.T) {
	eu := placement.Facts{Labels: map[string]string{"region": "eu", "tier": "spot"}}
	job := func(clusters, selector string) placement.Source {
		return placement.Source{Of: "the job", Clusters: clusters, Selector: selector}
	}
	queue := func(clusters, selector string) placement.Source {
		return placement.Source{Of: `LocalQueue "team"`, Clusters: clusters, Selector: selector}
	}
	for name, c := range map[string]struct {
		of      placement.Facts
		sources []placement.Source
		want    string // in the words for w1; empty: it is not left out
	}{
		"nobody says anything":     {of: eu, sources: []placement.Source{job("", "")}},
		"cordoned":                 {of: placement.FactsOf(nil, map[string]string{"ferry.dev/cordon": "true"}), want: "cordoned"},
		"cordoned no more":         {of: placement.FactsOf(nil, map[string]string{"ferry.dev/cordon": "false"})},
		"draining":                 {of: placement.FactsOf(nil, map[string]string{"ferry.dev/drain": "true"}), want: "being drained"},
		"pinned":                   {sources: []placement.Source{job("w1", "")}},
		"pinned, among others":     {sources: []placement.Source{job(" w2, w1,", "")}},
		"pinned elsewhere":         {sources: []placement.Source{job("w2", "")}, want: `left out by ferry.dev/clusters "w2" of the job`},
		"no name":                  {sources: []placement.Source{job(" , ", "")}, want: "nobody knows"},
		"selected":                 {of: eu, sources: []placement.Source{job("", "region in (eu, us)")}},
		"not selected":             {of: eu, sources: []placement.Source{job("", "tier!=spot")}, want: `left out by ferry.dev/cluster-selector "tier!=spot" of the job`},
		"no selector":              {of: eu, sources: []placement.Source{job("", "region = = eu")}, want: "nobody knows"},
		"the queue leaves it out":  {of: eu, sources: []placement.Source{job("w1", ""), queue("", "region=us")}, want: `of LocalQueue "team"`},
		"the job narrows the rest": {of: eu, sources: []placement.Source{job("", "tier=gold"), queue("w1,w2", "")}, want: "of the job"},
	} {
		t.Run(name, func(t *testing.T) {
			got := placement.Excludes("w1", c.of, placement.WishOf(c.sources...))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("w1 is left out by %q, want %q", got, c.want)
			}
		})
	}
}

func TestTroubleTeaches(t *testing.T) {
	for value, want := range map[string]string{
		"region = = eu": `ferry.dev/cluster-selector "region = = eu" of the job is no label selector such as region=eu,tier!=spot`,
		"a b":           "is no label selector",
	} {
		if got := placement.WishOf(placement.Source{Of: "the job", Selector: value}).Trouble; !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	wish := placement.WishOf(placement.Source{Of: "the job", Clusters: "w3,w4"}, placement.Source{Of: `Namespace "a"`, Selector: "gpu"})
	none := func(string) placement.Facts { return placement.Facts{} }
	if got, want := wish.MeetsNobody([]string{"w1", "w2"}, none), `ferry.dev/clusters "w3,w4" of the job and ferry.dev/cluster-selector "gpu" of Namespace "a"`; got != want {
		t.Errorf("nobody meets %q, want %q", got, want)
	}
	if got := wish.MeetsNobody(nil, none); got != "" {
		t.Errorf("without workers nobody meets %q", got)
	}
}

// TestSourcesOnlyNarrow: whoever else says something, no worker comes back that somebody left out.
func TestSourcesOnlyNarrow(t *testing.T) {
	value := rapid.SampledFrom([]string{"", "w1", "w2,w1", "w3", "x"})
	selector := rapid.SampledFrom([]string{"", "a=b", "a!=b", "c", "!c", "a in (b, d)", "=", "a=b,c"})
	rapid.Check(t, func(t *rapid.T) {
		of := placement.Facts{Labels: rapid.MapOf(rapid.SampledFrom([]string{"a", "c"}), rapid.SampledFrom([]string{"b", "d"})).Draw(t, "labels")}
		var sources []placement.Source
		left := false
		for range rapid.IntRange(0, 3).Draw(t, "sources") {
			sources = append(sources, placement.Source{Of: "somebody", Clusters: value.Draw(t, "clusters"), Selector: selector.Draw(t, "selector")})
			out := placement.Excludes("w1", of, placement.WishOf(sources...)) != ""
			if left && !out {
				t.Fatalf("%v let w1 in again", sources)
			}
			left = out
		}
	})
}

// TestFiltersAreDocumented: docs/placement.md has the table of filters, in their order.
func TestFiltersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/placement.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, f := range placement.Filters() {
		fmt.Fprintf(&table, "| %s | %s |\n", f.Name, f.Doc)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/placement.md lacks\n%s", table.String())
	}
}
