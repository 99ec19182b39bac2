package reason

import (
	"fmt"
	"strings"
)

// NotStarted says why a job that was placed has no ready pod.
func NotStarted(warning string) string { return "none of its pods is ready: " + warning }

// OnWorker is a worker's event in one line: its reason, what it is about, and its words.
func OnWorker(why, kind, name, message string) string {
	return fmt.Sprintf("%s: %s %s: %s", why, kind, name, Brief(strings.Join(strings.Fields(message), " ")))
}

// NeverStarted says why a job leaves its worker.
func NeverStarted(worker, warning string) string {
	return fmt.Sprintf("The job did not start on worker %q: %s; offering it to the others", worker, warning)
}

// RefusedByManager says what Ferry may not write on the manager.
func RefusedByManager(what, why string) string {
	return fmt.Sprintf("The manager refuses to %s: %s. Does Ferry have the rights of its ClusterRole there, and does an admission webhook or policy refuse it?", what, Brief(why))
}
