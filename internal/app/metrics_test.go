package app

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"ferry.dev/ferry/internal/apply"
	_ "ferry.dev/ferry/internal/fleet" // registers its own
)

var update = flag.Bool("update", false, "rewrite the table of docs/metrics.md")

// TestDocsMetrics: docs/metrics.md has every metric of Ferry's with its labels, and no other.
func TestDocsMetrics(t *testing.T) {
	const document = "../../docs/metrics.md"
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), "<!-- metrics: generated -->\n")
	_, after, closed := strings.Cut(rest, "<!-- /metrics -->")
	if !found || !closed {
		t.Fatalf("%s lacks the marks of its table", document)
	}
	want := before + "<!-- metrics: generated -->\n" + metricsTable(t) + "<!-- /metrics -->" + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(data) != want {
		t.Errorf("%s is out of date: make golden rewrites it", document)
	}
}

var described = regexp.MustCompile(`^Desc\{fqName: "((?:ferry|multikueue)_\w+)", help: (".*"), constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

func metricsTable(t *testing.T) string {
	registry := prometheus.NewRegistry()
	apply.NewMetrics(registry, "")
	countDecisions(registry)
	registry.MustRegister(&quotaMetrics{})
	var rows []string
	for _, from := range []prometheus.Collector{registry, metrics.Registry.(prometheus.Collector)} {
		for _, d := range describe(from) {
			if m := described.FindStringSubmatch(d); m != nil {
				labels := "–"
				if m[3] != "" {
					labels = "`" + strings.ReplaceAll(m[3], ",", "`, `") + "`"
				}
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", m[1], labels, strings.Trim(m[2], `"`)))
			}
		}
	}
	if len(rows) < 6 {
		t.Fatalf("only %d metrics were found: %v", len(rows), rows)
	}
	slices.Sort(rows)
	return "| Metric | Labels | Meaning |\n| --- | --- | --- |\n" + strings.Join(slices.Compact(rows), "")
}

func describe(c prometheus.Collector) (all []string) {
	ch := make(chan *prometheus.Desc)
	go func() { c.Describe(ch); close(ch) }()
	for d := range ch {
		all = append(all, d.String())
	}
	return all
}
