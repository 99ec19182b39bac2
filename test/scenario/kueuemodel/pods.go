package kueuemodel

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
)

// QueueLabel names a job's LocalQueue.
const QueueLabel = "kueue.x-k8s.io/queue-name"

// jobController is what the Job controller and the pods could do next.
func (m *Model) jobController(job *unstructured.Unstructured) []Step {
	ended, _ := Ended(job)
	switch {
	case ended || job.GetDeletionTimestamp() != nil:
		return nil
	case hasCondition(job, "SuccessCriteriaMet", "True"):
		return []Step{m.status("complete", job, m.complete)}
	case hasCondition(job, "FailureTarget", "True"):
		return []Step{m.status("fail", job, m.fail)}
	case Suspended(job):
		return []Step{m.suspendPods(job)}
	case !started(job):
		return []Step{m.status("start the pods of", job, m.startPods(job))}
	}
	return m.progress(job)
}

func (m *Model) progress(job *unstructured.Unstructured) []Step {
	active, ready := count(job, "active"), count(job, "ready")
	var steps []Step
	if active == 0 && m.Cluster.NoPods != "" {
		return nil
	}
	if active == 0 && count(job, "succeeded") == 0 {
		return []Step{m.status("make the missing pods of", job, m.startPods(job))}
	}
	choose := func(name string, change func(map[string]any)) {
		steps = append(steps, m.choice(m.status(name, job, change)))
	}
	if ready < active {
		steps = append(steps, m.status("make a pod ready of", job, func(s map[string]any) { s["ready"] = ready + 1 }))
		return steps
	}
	choose("fail a pod of", func(s map[string]any) {
		s["failed"] = count(job, "failed") + 1
		s["active"], s["ready"] = int64(0), int64(0)
		m.condition(s, "FailureTarget", "True", "BackoffLimitExceeded")
	})
	choose("succeed a pod of", func(s map[string]any) {
		s["succeeded"] = count(job, "succeeded") + 1
		s["active"], s["ready"] = active-1, ready-1
		if active == 1 {
			m.condition(s, "SuccessCriteriaMet", "True", "CompletionsReached")
		}
	})
	return steps
}

func (m *Model) startPods(job *unstructured.Unstructured) func(map[string]any) {
	parallelism, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
	return func(s map[string]any) {
		s["active"], s["ready"] = parallelism-count(job, "succeeded"), int64(0)
		if m.Cluster.NoPods != "" {
			s["active"] = int64(0)
		}
		s["startTime"] = m.stamp()
		if hasCondition(job, "Suspended", "True") {
			m.condition(s, "Suspended", "False", "JobResumed")
		}
	}
}

func (m *Model) suspendPods(job *unstructured.Unstructured) Step {
	if hasCondition(job, "Suspended", "True") && count(job, "active") == 0 && !started(job) {
		return Step{}
	}
	return m.status("suspend the pods of", job, func(s map[string]any) {
		s["active"], s["ready"] = int64(0), int64(0)
		delete(s, "startTime")
		m.condition(s, "Suspended", "True", "JobSuspended")
	})
}

func (m *Model) complete(s map[string]any) {
	s["completionTime"] = m.stamp()
	m.condition(s, "Complete", "True", "CompletionsReached")
}

func (m *Model) fail(s map[string]any) { m.condition(s, "Failed", "True", "BackoffLimitExceeded") }

func (m *Model) stamp() string { return m.Cluster.Now().UTC().Format(time.RFC3339) }

func (m *Model) condition(s map[string]any, t, status, reason string) {
	conditions, _ := s["conditions"].([]any)
	next := map[string]any{"type": t, "status": status, "reason": reason, "lastTransitionTime": m.stamp(), "lastProbeTime": m.stamp()}
	for i, c := range conditions {
		if c.(map[string]any)["type"] == t {
			conditions[i] = next
			return
		}
	}
	s["conditions"] = append(conditions, next)
}

// status is a step that writes a job's status.
func (m *Model) status(name string, job *unstructured.Unstructured, change func(map[string]any)) Step {
	key := cluster.KeyOf(job)
	return Step{Name: name + " " + job.GetName(), Do: func() {
		m.Cluster.Edit(key, func(o client.Object) {
			u := o.(*unstructured.Unstructured)
			status, _, _ := unstructured.NestedMap(u.Object, "status")
			if status == nil {
				status = map[string]any{}
			}
			change(status)
			u.Object["status"] = status
		})
	}}
}

// Finish takes a running job to its end in one go; false when it does not run.
func (m *Model) Finish(job *unstructured.Unstructured, success bool) bool {
	if isPod(job) {
		return m.finishPod(job, success)
	}
	if Suspended(job) || !started(job) {
		return false
	}
	want := "succeed a pod of "
	if !success {
		want = "fail a pod of "
	}
	for {
		job = m.Cluster.Job(job.GetNamespace(), job.GetName())
		if ended, _ := Ended(job); ended {
			return true
		}
		steps := m.jobController(job)
		for _, s := range steps {
			if !s.Choice || s.Name == want+job.GetName() {
				s.Do()
				break
			}
		}
	}
}

// Ended tells whether a job is over, and how.
func Ended(job *unstructured.Unstructured) (ended, success bool) {
	if isPod(job) {
		return podEnded(job)
	}
	if hasCondition(job, "Complete", "True") {
		return true, true
	}
	return hasCondition(job, "Failed", "True"), false
}

// decided tells that the end of a job is certain, though not yet there.
func decided(job *unstructured.Unstructured) bool {
	return hasCondition(job, "SuccessCriteriaMet", "True") || hasCondition(job, "FailureTarget", "True")
}

// Suspended tells whether a job's spec keeps it from running.
func Suspended(job *unstructured.Unstructured) bool {
	if isPod(job) {
		return gated(job, kinds.KueueGate)
	}
	suspend, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return suspend
}

func started(job *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedString(job.Object, "status", "startTime")
	return found
}

func count(job *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(job.Object, "status", field)
	return n
}

func hasCondition(job *unstructured.Unstructured, t, status string) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == t && m["status"] == status {
			return true
		}
	}
	return false
}
