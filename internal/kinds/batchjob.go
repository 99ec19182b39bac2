package kinds

import (
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var batchJob = Kind{
	Framework:  "batch/job",
	GVK:        batchv1.SchemeGroupVersion.WithKind("Job"),
	Plural:     "jobs",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: batchv1.JobControllerName,
	Suspend:    Path{"spec", "suspend"},
	Drop: []Path{
		// The manager's own controller deletes the job there; on the worker it
		// would take the result away before it was seen.
		{"spec", "ttlSecondsAfterFinished"},
	},
	Templates: []Path{{"spec", "template"}},
	Flow: []Path{
		{"spec", "activeDeadlineSeconds"}, {"spec", "backoffLimit"}, {"spec", "maxFailedIndexes"}, {"spec", "podReplacementPolicy"},
	},
	project: dropGenerated,
	ended:   whenTrue(string(batchv1.JobComplete), string(batchv1.JobFailed)),
	ready:   batchReady,
	ran:     counted("failed"),
	reflect: reflectJob,
	resize:  resizeJob,
	grant:   grantJob,
	Doc: Doc{
		Drop: "Kubernetes on the manager deletes the job by its own time to live; on the worker that would take the result away before it was seen. " +
			"The selector and the labels that the API server generated are made anew there.",
		Status: "the whole status, made a legal successor of the one before, as Kubernetes wants it: counters never fall, " +
			"the start stays while the job runs, the conditions that announce the end come with the end",
		Flow: "With the annotation `kueue.x-k8s.io/elastic-job: \"true\"`, `spec.parallelism` too, and `spec.completions` where it equals it: " +
			"growth once the worker has quota for it, and no pod that runs is restarted",
		Needs: "nothing beyond Kubernetes and Kueue",
	},
}

// dropGenerated removes the selector and the pod template's labels that the API
// server made for the manager's job, unless the user manages the selector, in
// which case they are his and a copy without them would be refused.
func dropGenerated(job *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(job.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job.Object, "spec", "selector")
	for _, label := range []string{"job-name", "controller-uid", batchv1.JobNameLabel, batchv1.ControllerUidLabel} {
		unstructured.RemoveNestedField(job.Object, "spec", "template", "metadata", "labels", label)
	}
}

// reflectJob follows the rules that Kubernetes 1.36 sets for status updates of
// Jobs with managedBy (pkg/apis/batch/validation): the counters never fall, a
// terminal condition never goes away, startTime is fixed while unsuspended.
func reflectJob(manager, worker *unstructured.Unstructured, now time.Time) map[string]any {
	was := jobOf(manager)
	if jobEnded(was.Status) {
		return statusOf(manager)
	}
	if worker == nil {
		return stoppedStatus(manager, was, now)
	}
	is := jobOf(worker)
	stopping := isSuspended(is) && was.Status.Active > 0
	if (isSuspended(was) || isSuspended(is)) && !jobEnded(is.Status) && !stopping {
		// Not started yet, there or here: what Kueue still changes in the spec on
		// start is refused once the status says "running".
		return statusOf(manager)
	}
	return nextStatus(manager, worker, was, is, now)
}

// nextStatus is the worker's status, made a legal successor of the manager's.
func nextStatus(manager, worker *unstructured.Unstructured, was, is *batchv1.Job, now time.Time) map[string]any {
	status := statusOf(worker)
	if !canShrink(was) {
		keepCounter(status, "succeeded", was.Status.Succeeded, is.Status.Succeeded)
	}
	keepCounter(status, "failed", was.Status.Failed, is.Status.Failed)
	keepIndexes(status, was.Spec.Completions)
	if !startTimeMayChange(was, is) {
		copyField(status, statusOf(manager), "startTime")
	}
	if jobEnded(is.Status) {
		alignTimes(status, now)
	} else {
		// Once set these two can never be taken back, and a copy may still be
		// lost and run again elsewhere: they come with the end.
		removeConditions(status, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget)
	}
	return status
}

// keepIndexes leaves out the indexes that the manager's job does not have. Its copy may have more: of an elastic job that
// shrinks here while it ends there, and of one that Kueue admits in part, on each cluster as far as quota goes.
func keepIndexes(status map[string]any, completions *int32) {
	for _, field := range []string{"completedIndexes", "failedIndexes"} {
		indexes, said := status[field].(string)
		if !said || completions == nil {
			continue
		}
		status[field] = below(indexes, int(*completions))
		if field == "completedIndexes" && status[field] == "" {
			delete(status, field) // as the API server does
		}
	}
}

// below is the part of a list such as "0,2-4" that is below a limit.
func below(indexes string, limit int) string {
	var kept []string
	for _, interval := range strings.Split(indexes, ",") {
		first, last, isRange := strings.Cut(interval, "-")
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		switch {
		case first == "" || from >= limit:
		case isRange && to >= limit && from == limit-1:
			kept = append(kept, first)
		case isRange && to >= limit:
			kept = append(kept, first+"-"+strconv.Itoa(limit-1))
		default:
			kept = append(kept, interval)
		}
	}
	return strings.Join(kept, ",")
}

// alignTimes gives a finished status a start that is not after its end. A Job
// without completions ends without a start when suspended; and a start that had
// to be kept may be by the clock of another worker.
func alignTimes(status map[string]any, now time.Time) {
	start, _ := status["startTime"].(string)
	end, ended := status["completionTime"].(string)
	switch {
	case start == "" && ended:
		status["startTime"] = end
	case start == "":
		status["startTime"] = now.UTC().Format(time.RFC3339)
	case ended && before(end, start):
		status["completionTime"] = start
	}
}

func before(a, b string) bool {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	return errX == nil && errY == nil && x.Before(y)
}

// stoppedStatus is the manager's status when nothing of the job runs anywhere.
func stoppedStatus(manager *unstructured.Unstructured, was *batchv1.Job, now time.Time) map[string]any {
	status := statusOf(manager)
	for _, field := range []string{"active", "ready", "terminating"} {
		if _, set := status[field]; set {
			status[field] = int64(0)
		}
	}
	delete(status, "uncountedTerminatedPods")
	if isSuspended(was) {
		delete(status, "startTime")
		setCondition(status, batchv1.JobSuspended, "JobSuspended", "Job suspended", now)
	}
	return status
}

func jobOf(obj *unstructured.Unstructured) *batchv1.Job {
	job := &batchv1.Job{}
	// The API server validated the object as a Job.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, job)
	return job
}

func jobEnded(s batchv1.JobStatus) bool {
	return conditionTrue(s, batchv1.JobComplete) || conditionTrue(s, batchv1.JobFailed)
}

func isSuspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func conditionTrue(s batchv1.JobStatus, t batchv1.JobConditionType) bool {
	return conditionStatus(s, t) == "True"
}

func conditionStatus(s batchv1.JobStatus, t batchv1.JobConditionType) string {
	for _, c := range s.Conditions {
		if c.Type == t {
			return string(c.Status)
		}
	}
	return ""
}

// canShrink: an Indexed Job with as many completions as pods may be scaled
// down, and only then may the succeeded counter fall.
func canShrink(job *batchv1.Job) bool {
	s := job.Spec
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion &&
		s.Completions != nil && s.Parallelism != nil && *s.Completions == *s.Parallelism
}

func startTimeMayChange(was, is *batchv1.Job) bool {
	if was.Status.StartTime == nil || isSuspended(was) {
		return true
	}
	return conditionTrue(was.Status, batchv1.JobSuspended) && conditionStatus(is.Status, batchv1.JobSuspended) == "False"
}

func statusOf(obj *unstructured.Unstructured) map[string]any {
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	if status == nil {
		return map[string]any{}
	}
	return status
}

func keepCounter(status map[string]any, field string, was, is int32) {
	if was > is {
		status[field] = int64(was)
	}
}

func copyField(to, from map[string]any, field string) {
	if value, ok := from[field]; ok {
		to[field] = value
	} else {
		delete(to, field)
	}
}

func removeConditions(status map[string]any, types ...batchv1.JobConditionType) {
	conditions, _ := status["conditions"].([]any)
	var kept []any
	for _, c := range conditions {
		if !hasType(c, types...) {
			kept = append(kept, c)
		}
	}
	if len(kept) == len(conditions) {
		return
	}
	if len(kept) == 0 {
		delete(status, "conditions")
		return
	}
	status["conditions"] = kept
}

func hasType(condition any, types ...batchv1.JobConditionType) bool {
	c, _ := condition.(map[string]any)
	for _, t := range types {
		if c["type"] == string(t) {
			return true
		}
	}
	return false
}

// setCondition makes a condition true, and leaves it alone where it is.
func setCondition(status map[string]any, t batchv1.JobConditionType, reason, message string, now time.Time) {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if m, _ := c.(map[string]any); hasType(c, t) && m["status"] == "True" {
			return
		}
	}
	removeConditions(status, t)
	conditions, _ = status["conditions"].([]any)
	at := now.UTC().Format(time.RFC3339)
	status["conditions"] = append(conditions, map[string]any{
		"type": string(t), "status": "True", "reason": reason, "message": message,
		"lastProbeTime": at, "lastTransitionTime": at,
	})
}
