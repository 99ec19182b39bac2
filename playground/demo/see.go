package demo

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// How the kinds say in their status where they are. Nothing here is about one kind: each says it in some of these ways.
var (
	// ending and going are conditions.
	ending = map[string]State{"Complete": Succeeded, "Completed": Succeeded, "Succeeded": Succeeded, "Failed": Failed}
	going  = "Running"
	// words are fields of the status, and meanings are what is found there, in any case of letters.
	words    = []string{"jobStatus", "jobDeploymentStatus", "phase", "state", "serviceStatus"}
	meanings = map[string]State{
		"succeeded": Succeeded, "complete": Succeeded, "completed": Succeeded, "failed": Failed, "stopped": Failed,
		"running": Running, "ready": Ready,
	}
	// ready are pairs of fields: how many are ready, of how many.
	ready = [][2][]string{
		{{"status", "readyReplicas"}, {"spec", "replicas"}},
		{{"status", "readyWorkerReplicas"}, {"status", "desiredWorkerReplicas"}},
	}
	// counters count pods, or Jobs, in the status itself or in each of its parts.
	counters = []string{"active", "succeeded", "failed"}
	parts    = []string{"replicatedJobsStatus", "jobsStatus", "replicaStatuses"}
)

// seen is what an object's own status says.
type seen struct {
	state    State // "" while it says nothing of use
	progress string
	why      string
}

// see reads the status of an object of any kind. A kind that serves is ready when its own words, or all that it counts,
// say so; for it, to run is to be ready.
func see(o *unstructured.Unstructured, serves bool) seen {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	s := seen{}
	var total map[string]int64
	s.progress, total = tally(status)
	s.state, s.why = spoken(status)
	if s.state == "" && (total["active"] > 0 || total["succeeded"] > 0 || status["startTime"] != nil && o.GetKind() == "Job") {
		s.state = Running
	}
	if status["lastSuccessfulTime"] != nil {
		s.state = Succeeded
	} else if active, _ := status["active"].([]any); len(active) > 0 {
		s.state = Running
	}
	if !serves {
		return s
	}
	if s.state == Running {
		s.state = Ready
	}
	return readyOf(o, s)
}

// readyOf adds what a serving kind counts.
func readyOf(o *unstructured.Unstructured, s seen) seen {
	for _, pair := range ready {
		want, counts, _ := unstructured.NestedInt64(o.Object, pair[1]...)
		if !counts {
			continue
		}
		have, _, _ := unstructured.NestedInt64(o.Object, pair[0]...)
		s.progress = fmt.Sprintf("%d/%d ready", have, want)
		switch {
		case have < want && have > 0:
			s.state = Running
		case have < want:
			s.state = ""
		case s.state == "" && observed(o):
			s.state = Ready
		}
		return s
	}
	return s
}

// observed tells whether the status is about the spec as it is now.
func observed(o *unstructured.Unstructured) bool {
	generation, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return !found || generation >= o.GetGeneration()
}

// spoken is the state by conditions and words; an end goes before all else.
func spoken(status map[string]any) (State, string) {
	conditions, _ := status["conditions"].([]any)
	state := State("")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["status"] != "True" {
			continue
		}
		kind, _ := condition["type"].(string)
		switch end := ending[kind]; {
		case end == Failed:
			why, _ := condition["message"].(string)
			return Failed, why
		case end != "":
			state = end
		case kind == going && state == "":
			state = Running
		}
	}
	if state == Succeeded {
		return state, ""
	}
	for _, field := range words {
		word, _ := status[field].(string)
		if meaning := meanings[strings.ToLower(word)]; meaning != "" {
			message, _ := status["message"].(string)
			if meaning != Failed {
				message = ""
			}
			return meaning, message
		}
	}
	return state, ""
}

// tally adds up the counters of the status and of its parts.
func tally(status map[string]any) (text string, total map[string]int64) {
	total = map[string]int64{}
	add := func(part any) {
		fields, _ := part.(map[string]any)
		for _, counter := range counters {
			n, _ := fields[counter].(int64)
			total[counter] += n
		}
	}
	add(status)
	for _, name := range parts {
		switch part := status[name].(type) {
		case []any:
			for _, p := range part {
				add(p)
			}
		case map[string]any:
			for _, p := range part {
				add(p)
			}
		}
	}
	var said []string
	for _, counter := range counters {
		if total[counter] > 0 {
			said = append(said, fmt.Sprintf("%d %s", total[counter], counter))
		}
	}
	return strings.Join(said, ", "), total
}
