package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/world"
)

var update = flag.Bool("update", false, "write what the transcripts' commands print into testdata")

// block is some commands of a transcript, with comments, and what they print.
type block struct {
	commands []string
	want     string
}

const divider = "----"

// TestTranscripts plays testdata/*.txt: lines of commands, then a divider, then
// what they print, then an empty line.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { play(t, file) })
	}
}

func play(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks := parse(string(raw))
	s := &session{}
	for i := range blocks {
		got := s.run(blocks[i].commands)
		if !*update && got != blocks[i].want {
			t.Errorf("after:\n  %s\nwant:\n%s\ngot:\n%s", strings.Join(blocks[i].commands, "\n  "), blocks[i].want, got)
			break
		}
		blocks[i].want = got
	}
	if s.world != nil && len(s.world.Violations()) > 0 {
		t.Errorf("never may happen:\n  %s\nlast steps:\n  %s", strings.Join(s.world.Violations(), "\n  "), strings.Join(s.world.Trace(40), "\n  "))
	}
	if t.Failed() && testing.Verbose() && s.world != nil {
		t.Log(strings.Join(s.world.Trace(100), "\n  "))
	}
	if *update {
		if err := os.WriteFile(file, []byte(format(blocks)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func parse(text string) []block {
	var blocks []block
	for _, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		commands, want, found := strings.Cut(part+"\n", divider+"\n")
		if !found {
			commands = part
		}
		blocks = append(blocks, block{strings.Split(strings.TrimSpace(commands), "\n"), want})
	}
	return blocks
}

func format(blocks []block) string {
	var b strings.Builder
	for i, part := range blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintln(&b, strings.Join(part.commands, "\n"))
		if part.want != "" {
			fmt.Fprintf(&b, "%s\n%s", divider, part.want)
		}
	}
	return b.String()
}

// TestEveryRuleOccurs: a rule that no transcript shows is a rule that nobody can read about.
func TestEveryRuleOccurs(t *testing.T) {
	var all strings.Builder
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range parse(string(raw)) {
			all.WriteString(b.want)
		}
	}
	words := strings.FieldsFunc(all.String(), func(r rune) bool { return r == ' ' || r == '\n' || r == '=' })
	shown := map[string]bool{}
	for _, word := range words {
		shown[word] = true
	}
	for _, rule := range plan.Rules() {
		if !shown[rule.Name] {
			t.Errorf("rule %s occurs in no transcript", rule.Name)
		}
	}
}

// session is a transcript being played.
type session struct {
	world *world.World
	out   strings.Builder
	told  int
	seen  map[string]int
}

func (s *session) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *session) run(lines []string) string {
	s.out.Reset()
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		f, found := commands[words[0]]
		if !found {
			s.printf("there is no command %q", words[0])
			continue
		}
		if words[0] != "workers" && s.world == nil {
			s.printf("a transcript begins with workers")
			continue
		}
		f(s, words[1:])
	}
	return s.out.String()
}
