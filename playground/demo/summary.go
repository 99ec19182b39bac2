package demo

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// atOnce: a job that waits on a worker for longer than this waited for room, not for Kueue.
const atOnce = time.Second

// summary tells which worker ran what, and how long it took to get there.
func summary(rows []Row, rides map[string]Ride) string {
	lines := [][]string{{"JOB", "RESULT", "WORKER", "DISPATCH", "KUEUE", "FERRY"}}
	var totals, ferrys []time.Duration
	for _, row := range rows {
		ride, known := rides[row.Job]
		if !known {
			lines = append(lines, []string{row.Job, string(row.State), row.Worker, "-", "-", "-"})
			continue
		}
		lines = append(lines, []string{
			row.Job, string(row.State), cmp.Or(row.Worker, ride.Worker), millis(ride.Total), millis(ride.Kueue()), millis(ride.Ferry()),
		})
		ferrys = append(ferrys, ride.Ferry())
		if ride.Waited < atOnce {
			totals = append(totals, ride.Total)
		}
	}
	var b strings.Builder
	b.WriteString(strings.Join(layout(lines), "\n") + "\n\n")
	b.WriteString("DISPATCH: from the quota reservation on the manager to the Job on the worker, by\n" +
		"the audit logs. KUEUE: the part in which Ferry waited for Kueue, above all for\n" +
		"room on a worker. FERRY: the rest, with the API servers' work on its requests.\n\n")
	if len(ferrys) > 0 {
		fmt.Fprintf(&b, "Median of FERRY: %s\n", millis(median(ferrys)))
	}
	if len(totals) > 0 {
		fmt.Fprintf(&b, "Median of DISPATCH: %s (%d jobs that found room at once)\n", millis(median(totals)), len(totals))
	}
	return b.String()
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
