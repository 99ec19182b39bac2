package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Start is how far a copy on a worker is in starting, as its status tells.
type Start int

const (
	// StartUnknown: the kind's status does not tell, nobody has written it yet, or the copy is suspended.
	StartUnknown Start = iota
	// NotReady: none of its pods is ready, and none is known to have run.
	NotReady
	// HasRun: none of its pods is ready now, but some may have run before.
	HasRun
	// PodsReady: pods of it are ready, or were to their end.
	PodsReady
)

// Start tells how far a copy is in starting.
func (k *Kind) Start(job *unstructured.Unstructured) Start {
	status, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status")
	fields, _ := status.(map[string]any)
	switch {
	case k.ready == nil || len(fields) == 0 || k.isSuspended(job):
		return StartUnknown
	case k.ended != nil && k.ended(job), k.ready(job):
		return PodsReady
	case k.ran(job):
		return HasRun
	default:
		return NotReady
	}
}

func (k *Kind) isSuspended(job *unstructured.Unstructured) bool {
	if len(k.Suspend) == 0 {
		return false
	}
	is, _, _ := unstructured.NestedFieldNoCopy(job.Object, k.Suspend...)
	return is == k.suspended()
}

// counted tells whether one of these counters, anywhere in the status, is more than zero.
func counted(names ...string) func(job *unstructured.Unstructured) bool {
	return func(job *unstructured.Unstructured) bool {
		status, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status")
		return hasCount(status, names)
	}
}

func hasCount(value any, names []string) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range names {
			if n, isNumber := v[name].(int64); isNumber && n > 0 {
				return true
			}
		}
		for _, field := range v {
			if hasCount(field, names) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if hasCount(item, names) {
				return true
			}
		}
	}
	return false
}

// eitherOf tells whether one of the tests does.
func eitherOf(tests ...func(*unstructured.Unstructured) bool) func(*unstructured.Unstructured) bool {
	return func(job *unstructured.Unstructured) bool {
		for _, test := range tests {
			if test(job) {
				return true
			}
		}
		return false
	}
}

func always(*unstructured.Unstructured) bool { return true }

// batchReady: API servers that do not count ready pods are older than Kueue wants; a status without the count is not a server's.
func batchReady(job *unstructured.Unstructured) bool {
	_, counts, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "ready")
	return counted("ready", "succeeded")(job) || !counts && counted("active")(job)
}

func podReady(p *unstructured.Unstructured) bool {
	if c := conditionOf(statusOf(p), "Ready"); c != nil {
		return c["status"] == "True"
	}
	return podPhase(p) == "Running"
}

func podRan(p *unstructured.Unstructured) bool { return podPhase(p) == "Running" || podEnded(p) }
