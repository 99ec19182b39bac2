package reason

import (
	"fmt"
	"strings"
)

// MeetsNobody says that what was asked of a worker is true of none.
func MeetsNobody(demands string, workers []string) string {
	return fmt.Sprintf("The job may go nowhere: no worker of the MultiKueueConfig (%s) meets %s", strings.Join(workers, ", "), demands)
}

// WorkerDrains says that the job makes room on a worker that is being drained.
func WorkerDrains(worker string) string {
	return fmt.Sprintf("Worker %q is being drained; offering the job to the others", worker)
}
