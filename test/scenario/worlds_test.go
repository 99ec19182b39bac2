// Package scenario tests Ferry's real controllers over clusters in memory: by transcripts, and over random worlds.
package scenario

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/world"
)

var (
	worlds = flag.Int("worlds", 2000, "how many random worlds to live through")
	first  = flag.Uint64("first", 1, "the seed of the first random world")
	drop   = flag.String("without", "", "leave this rule out of the table: tests must fail then")
	seed   = flag.Uint64("seed", 0, "live through this world only, with its whole trace")
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	flag.Parse()
	if *drop != "" && !leaveOut(*drop) {
		fmt.Fprintf(os.Stderr, "there is no rule %q to leave out\n", *drop)
		os.Exit(2)
	}
	// Worlds are short-lived: memory is cheaper than collecting it.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// leaveOut takes a rule's chance away: another one that has answered by then, or
// is about to, stands in its place.
func leaveOut(name string) bool {
	rules := plan.Rules()
	i := slices.IndexFunc(rules, func(r plan.Rule) bool { return r.Name == name })
	if i < 0 {
		return false
	}
	if i+1 < len(rules) {
		rules[i] = rules[i+1]
	} else {
		rules[i] = rules[i-1]
	}
	return plan.Rules()[i].Name != name
}

func TestRandomWorlds(t *testing.T) {
	if *seed != 0 {
		w := world.Random(*seed)
		t.Log("\n" + strings.Join(w.Trace(1<<30), "\n"))
		report(t, *seed, w)
		return
	}
	var next, failed atomic.Uint64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for failed.Load() < enough {
				s := *first + next.Add(1) - 1
				if s >= *first+uint64(*worlds) {
					return
				}
				if w := world.Random(s); len(w.Violations()) > 0 {
					failed.Add(1)
					report(t, s, w)
				}
			}
		})
	}
	wait.Wait()
}

// enough failures are reported before the others are left out.
const enough = 5

func report(t *testing.T, seed uint64, w *world.World) {
	t.Helper()
	if len(w.Violations()) == 0 {
		return
	}
	t.Errorf("world %d:\n  %s\nlast steps:\n  %s\nreplay: go test ./test/scenario -run TestRandomWorlds -v -seed %d",
		seed, strings.Join(w.Violations(), "\n  "), strings.Join(w.Trace(40), "\n  "), seed)
}
