package kinds

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const observedGeneration = "observedGeneration"

// wholeStatus takes the worker's status as it is, but for what would be untrue
// on the manager: the status of a job that ended stays, one that stopped says so.
func (k *Kind) wholeStatus(manager, worker *unstructured.Unstructured, now time.Time) map[string]any {
	was := statusOf(manager)
	if ended, known := k.Ended(manager); ended && known || len(was) == 0 && worker == nil {
		return was
	}
	if worker == nil {
		return k.stoppedStatus(was, now)
	}
	status := statusOf(worker)
	if len(status) == 0 {
		// Its controller has not looked at it yet: nothing is known that is newer.
		return was
	}
	observe(status, was, manager, worker)
	return status
}

// observe turns the observedGeneration of a status, and of each of its conditions,
// into the manager's terms. Tools such as kubectl and Flux compare it with the
// object's own generation, which counts other edits than the copy's.
func observe(status, was map[string]any, manager, worker *unstructured.Unstructured) {
	translate(status, was, manager, worker)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		name, _ := condition["type"].(string)
		translate(condition, conditionOf(was, name), manager, worker)
	}
}

func translate(observed, was map[string]any, manager, worker *unstructured.Unstructured) {
	seen, found := observed[observedGeneration].(int64)
	switch {
	case !found:
	case seen == worker.GetGeneration():
		observed[observedGeneration] = manager.GetGeneration()
	default:
		copyField(observed, was, observedGeneration)
	}
}

// stoppedStatus forgets the run that is over: its successor begins from nothing,
// so counters and names of the one before would be untrue.
func (k *Kind) stoppedStatus(was map[string]any, now time.Time) map[string]any {
	if k.Stopped != nil {
		return maps.Clone(k.Stopped)
	}
	conditions, _ := was["conditions"].([]any)
	if len(was) == 1 && len(conditions) == 1 && saysTrue(conditions[0], "Suspended") {
		return was
	}
	return map[string]any{"conditions": []any{map[string]any{
		"type": "Suspended", "status": "True", "reason": "Suspended", "message": "Nothing of it runs on any worker",
		"lastTransitionTime": now.UTC().Format(time.RFC3339),
	}}}
}

// whenTrue tells from conditions that a job is over: any of these types is true.
func whenTrue(types ...string) func(*unstructured.Unstructured) bool {
	return func(job *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool { return saysTrue(c, types...) })
	}
}

// saysTrue tells whether a condition is true and of one of these types.
func saysTrue(condition any, types ...string) bool {
	c, _ := condition.(map[string]any)
	name, _ := c["type"].(string)
	return c["status"] == "True" && slices.Contains(types, name)
}

// whenField tells from a field of the status that a job is over: it has one of these values.
func whenField(field string, values ...string) func(*unstructured.Unstructured) bool {
	return func(job *unstructured.Unstructured) bool {
		value, _, _ := unstructured.NestedString(job.Object, "status", field)
		return slices.Contains(values, value)
	}
}
