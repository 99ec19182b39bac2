package demo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// columns are the heads of the table; what counts as progress differs.
func columns(progress string) []string { return []string{"JOB", "STATE", "WORKER", progress, "WHY"} }

// cells are a row's fields in the order of columns.
func (r Row) cells() []string {
	worker := r.Worker
	if worker == "" {
		worker = "-"
	}
	return []string{r.Job, string(r.State), worker, r.Progress, r.Why}
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
func table(progress string, rows []Row, seconds float64) []string {
	lines := [][]string{columns(progress)}
	counts := map[State]int{}
	for _, r := range rows {
		lines = append(lines, r.cells())
		counts[r.State]++
	}
	waiting := counts[Submitted] + counts[Queued] + counts[Offered]
	over := counts[Succeeded] + counts[Failed]
	running := len(rows) - waiting - over - counts[Ready]
	foot := fmt.Sprintf("%5.1fs  %d waiting, %d running, %d finished", seconds, waiting, running, over)
	if counts[Ready] > 0 {
		foot += fmt.Sprintf(", %d ready", counts[Ready])
	}
	return append(layout(lines), "", foot)
}

// changes are lines for those rows that are not as they were before.
func changes(before, now []Row, seconds float64) []string {
	was, width := map[string]Row{}, 15
	for _, r := range before {
		was[r.Job] = r
	}
	for _, r := range now {
		width = max(width, utf8.RuneCountInString(r.Job))
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
		line := fmt.Sprintf("%5.1fs  %-*s  %-16s  %-5s  %s", seconds, width, r.Job, string(r.State)+worker, r.Progress, r.Why)
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
