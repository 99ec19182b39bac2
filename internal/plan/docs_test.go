package plan_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"ferry.dev/ferry/internal/plan"
)

var update = flag.Bool("update", false, "rewrite docs/rules.md instead of comparing with it")

const rulesFile = "../../docs/rules.md"

// TestDocsRules: docs/rules.md is what the table says.
func TestDocsRules(t *testing.T) {
	want := rulesDoc()
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(rulesFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if string(got) != want {
		t.Error("docs/rules.md is stale; make golden rewrites it")
	}
}

func rulesDoc() string {
	var b strings.Builder
	b.WriteString(`# The rules

Ferry decides about a job by walking this list from the top: the first rule that answers wins.
Whatever the rule, a reachable worker also removes what it still has of an earlier quota reservation, or of an
earlier job of the same name.

This file is generated from the table in ` + "`internal/plan`" + ` by ` + "`make golden`" + `; do not edit it.

| | Rule | When it answers, and what it does |
| ---: | --- | --- |
`)
	for i, r := range plan.Rules() {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", i+1, r.Name, strings.ReplaceAll(r.Doc, "|", `\|`))
	}
	return b.String()
}
