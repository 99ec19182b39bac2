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
	if ended, known := k.Ended(manager); ended && known {
		return k.lastStatus(manager, worker)
	}
	if len(was) == 0 && worker == nil {
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

// AtRest tells whether an ended job's status says that nothing of it runs any more.
func (k *Kind) AtRest(job *unstructured.Unstructured) bool {
	rest := true
	k.eachRunning(job.Object, func(status map[string]any, field string) {
		n, _ := status[field].(int64)
		rest = rest && n == 0
	})
	return rest
}

// LastTransition is when a condition in a job's status last changed; zero when none says so.
func LastTransition(job *unstructured.Unstructured) time.Time {
	var last time.Time
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		text, _ := condition["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(last) {
			last = at
		}
	}
	return last
}

// eachRunning calls f with the place of each number of Running.
func (k *Kind) eachRunning(object map[string]any, f func(status map[string]any, field string)) {
	for _, path := range k.Running {
		last := len(path) - 1
		eachAt(object["status"], path[:last], func(status map[string]any) { f(status, path[last]) })
	}
}

// lastStatus is that of a job which ended: it stays, but for what was yet to come to rest. Without a copy nothing of
// it runs any more.
func (k *Kind) lastStatus(manager, worker *unstructured.Unstructured) map[string]any {
	was := statusOf(manager)
	switch {
	case k.AtRest(manager):
		return was
	case worker == nil:
		k.eachRunning(map[string]any{"status": was}, func(status map[string]any, field string) {
			if _, said := status[field]; said {
				status[field] = int64(0)
			}
		})
		return was
	}
	status := statusOf(worker)
	if ended, _ := k.Ended(worker); !ended || !repeats(status, was) {
		return was // another run's
	}
	observe(status, was, manager, worker)
	return status
}

// repeats tells whether all that was true is still.
func repeats(status, was map[string]any) bool {
	conditions, _ := was["conditions"].([]any)
	return !slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		name, _ := condition["type"].(string)
		now := conditionOf(status, name)
		return condition["status"] == "True" && (now == nil || now["status"] != "True")
	})
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
		found, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "conditions")
		conditions, _ := found.([]any)
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
