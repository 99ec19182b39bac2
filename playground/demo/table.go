package demo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

var columns = []string{"JOB", "STATE", "WORKER", "COMPLETIONS", "WHY"}

// cells are a row's fields in the order of columns.
func (r Row) cells() []string {
	worker := r.Worker
	if worker == "" {
		worker = "-"
	}
	return []string{r.Job, string(r.State), worker, r.Completions, r.Why}
}

// layout pads cells to columns. The last one keeps its length.
func layout(lines [][]string) []string {
	widths := map[int]int{}
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, 0, len(lines))
	for _, cells := range lines {
		var line strings.Builder
		for i, cell := range cells {
			line.WriteString(cell)
			if i < len(cells)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

// table is the whole live table, with a line below that counts.
func table(rows []Row, seconds float64) []string {
	lines := [][]string{columns}
	counts := map[State]int{}
	for _, r := range rows {
		lines = append(lines, r.cells())
		counts[r.State]++
	}
	waiting := counts[Submitted] + counts[Queued] + counts[Offered]
	over := counts[Succeeded] + counts[Failed]
	foot := fmt.Sprintf("%5.1fs  %d waiting, %d running, %d finished", seconds, waiting, len(rows)-waiting-over, over)
	return append(layout(lines), "", foot)
}

// changes are lines for those rows that are not as they were before.
func changes(before, now []Row, seconds float64) []string {
	was := map[string]Row{}
	for _, r := range before {
		was[r.Job] = r
	}
	var lines []string
	for _, r := range now {
		if old, known := was[r.Job]; known && old == r {
			continue
		}
		worker := ""
		if r.Worker != "" {
			worker = " on " + r.Worker
		}
		line := fmt.Sprintf("%5.1fs  %-15s  %-16s  %-5s  %s", seconds, r.Job, string(r.State)+worker, r.Completions, r.Why)
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// cut shortens a line to a terminal's width, and shows that it did.
func cut(line string, width int) string {
	if width <= 0 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}
