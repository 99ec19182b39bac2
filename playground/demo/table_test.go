package demo

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var shown = []Row{
	{Job: "train-1", State: Running, Worker: "w1", Progress: "2/10 (1 failed)"},
	{Job: "é", State: Offered, Progress: "0/1", Why: "Offered to w1; w2 (waits for quota)"},
	{Job: "b", State: Failed, Worker: "w2", Progress: "0/1", Why: "limit"},
}

func TestTable(t *testing.T) {
	g := NewWithT(t)
	g.Expect("\n" + strings.Join(table("COMPLETIONS", shown, 7.25), "\n")).To(Equal(`
JOB      STATE    WORKER  COMPLETIONS      WHY
train-1  Running  w1      2/10 (1 failed)
é        Offered  -       0/1              Offered to w1; w2 (waits for quota)
b        Failed   w2      0/1              limit

  7.2s  1 waiting, 1 running, 1 finished`))
}

func TestTableOfKinds(t *testing.T) {
	g := NewWithT(t)
	rows := append([]Row{{Job: "raycluster/r", State: Ready, Worker: "w1", Progress: "1/1 ready"}}, shown...)
	lines := table("PROGRESS", rows, 1)
	g.Expect(lines[0]).To(ContainSubstring("  PROGRESS  "))
	g.Expect(lines[len(lines)-1]).To(Equal("  1.0s  1 waiting, 1 running, 1 finished, 1 ready"))
}

func TestSummaryOfWhatTheLogsDoNotTell(t *testing.T) {
	g := NewWithT(t)
	text := summary([]Row{{Job: "a", State: Ready, Worker: "w1,w2"}}, nil)
	g.Expect(text).To(ContainSubstring("a    Ready   w1,w2   -         -      -\n"))
	g.Expect(text).NotTo(ContainSubstring("Median"))
}

func TestChanges(t *testing.T) {
	g := NewWithT(t)
	g.Expect(changes(nil, shown, 0)).To(HaveLen(3), "all are new")
	g.Expect(changes(shown, shown, 1)).To(BeEmpty())
	now := append([]Row(nil), shown...)
	now[1].Why, now[1].Worker, now[1].State = "", "w2", Placing
	g.Expect(changes(shown, now, 12.3)).To(Equal([]string{" 12.3s  é                Placing on w2     0/1"}))
}

func TestFrame(t *testing.T) {
	g := NewWithT(t)
	g.Expect(frame(0, []string{"ab"}, 80)).To(Equal("\rab\x1b[K\n\x1b[J"), "nothing is there to be replaced")
	g.Expect(frame(3, []string{"abc", "d"}, 2)).To(Equal("\x1b[3A\ra…\x1b[K\n\rd\x1b[K\n\x1b[J"))
	g.Expect(cut("abc", 3)).To(Equal("abc"))
	g.Expect(cut("abc", 0)).To(Equal("abc"), "the width is not known")
	g.Expect(cut("äöüß", 3)).To(Equal("äö…"))
}

func TestSummary(t *testing.T) {
	g := NewWithT(t)
	rides := map[string]Ride{
		"train-1": {Worker: "w1", Total: 100 * time.Millisecond, Waited: 30 * time.Millisecond},
		"é":       {Worker: "w1", Total: 9 * time.Second, Waited: 8900 * time.Millisecond},
		"b":       {Worker: "w2", Total: 200 * time.Millisecond, Waited: 50 * time.Millisecond},
	}
	text := summary(shown, rides)
	g.Expect(text).To(ContainSubstring("é        Offered  w1      9000 ms   8900 ms  100 ms\n"))
	g.Expect(text).To(ContainSubstring("Median of FERRY: 100 ms\n"))
	g.Expect(text).To(ContainSubstring("Median of DISPATCH: 150 ms (2 jobs that found room at once)\n"))
	for line := range strings.Lines(text) {
		g.Expect(len(line)).To(BeNumerically("<=", 82), line)
	}
	g.Expect(median(nil)).To(BeZero())
}
