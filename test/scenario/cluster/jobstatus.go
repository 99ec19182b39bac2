package cluster

import (
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// jobErrors tells why Kubernetes 1.36 would refuse next as the successor of old.
// Most rules bind only a status that changes the field in question.
func jobErrors(old, next *unstructured.Unstructured) []string {
	if reflect.DeepEqual(old.Object["status"], next.Object["status"]) {
		return templateErrors(old, next)
	}
	c := &jobCheck{}
	if c.old, c.next = decodeJob(old), decodeJob(next); c.old == nil || c.next == nil {
		return []string{"status: does not decode as a Job's"}
	}
	c.counters()
	c.transitions()
	c.ends()
	c.times()
	c.indexes()
	return append(c.errs, templateErrors(old, next)...)
}

func decodeJob(u *unstructured.Unstructured) *batchv1.Job {
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, job); err != nil {
		return nil
	}
	return job
}

// templateErrors: Kueue writes the flavor's node selector into the template when
// it starts a job, which only a job that is suspended and not started allows.
func templateErrors(old, next *unstructured.Unstructured) []string {
	was, _, _ := unstructured.NestedBool(old.Object, "spec", "suspend")
	is, _, _ := unstructured.NestedBool(next.Object, "spec", "suspend")
	if !was || is {
		return nil
	}
	job := decodeJob(old)
	if job.Status.StartTime != nil && !condition(job, batchv1.JobSuspended, "True") || job.Status.Active > 0 {
		return []string{"spec.template: the status says that the suspended job runs, so nothing may be changed on start"}
	}
	return nil
}

type jobCheck struct {
	old, next *batchv1.Job
	errs      []string
}

func (c *jobCheck) refuse(when bool, why string) {
	if when {
		c.errs = append(c.errs, why)
	}
}

func (c *jobCheck) counters() {
	was, is := c.old.Status, c.next.Status
	c.refuse(is.Active < 0 || is.Succeeded < 0 || is.Failed < 0 || deref(is.Ready) < 0 || deref(is.Terminating) < 0, "a counter is negative")
	c.refuse(is.Failed < was.Failed, "failed falls")
	c.refuse(is.Succeeded < was.Succeeded && !elasticIndexed(c.next), "succeeded falls")
	c.refuse((deref(is.Ready) != deref(was.Ready) || is.Active != was.Active) && deref(is.Ready) > is.Active, "more ready than active")
}

func (c *jobCheck) transitions() {
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		c.refuse(condition(c.old, t, "True") && !condition(c.next, t, "True"), string(t)+" is taken back")
	}
	met := condition(c.next, batchv1.JobSuccessCriteriaMet, "True")
	c.refuse(met && condition(c.next, batchv1.JobFailed, "True"), "SuccessCriteriaMet and Failed")
	c.refuse(met && condition(c.next, batchv1.JobFailureTarget, "True"), "SuccessCriteriaMet and FailureTarget")
	c.refuse(condition(c.old, batchv1.JobComplete, "True") && !condition(c.old, batchv1.JobSuccessCriteriaMet, "True") && met, "SuccessCriteriaMet after Complete")
}

func (c *jobCheck) ends() {
	is := c.next.Status
	complete, failed := condition(c.next, batchv1.JobComplete, "True"), condition(c.next, batchv1.JobFailed, "True")
	changed := (complete || failed) != (condition(c.old, batchv1.JobComplete, "True") || condition(c.old, batchv1.JobFailed, "True"))
	ended := complete || failed
	c.refuse(complete && failed, "Complete and Failed")
	c.refuse(complete && condition(c.next, batchv1.JobFailureTarget, "True"), "Complete and FailureTarget")
	c.refuse(complete && !condition(c.next, batchv1.JobSuccessCriteriaMet, "True"), "Complete without SuccessCriteriaMet")
	c.refuse(failed && !condition(c.next, batchv1.JobFailureTarget, "True"), "Failed without FailureTarget")
	c.refuse(ended && (changed || is.Active != c.old.Status.Active) && is.Active > 0, "finished with active pods")
	c.refuse(ended && deref(is.Terminating) > 0, "finished with terminating pods")
	c.refuse(ended && is.StartTime == nil, "finished without startTime")
	u := is.UncountedTerminatedPods
	c.refuse(ended && u != nil && len(u.Failed)+len(u.Succeeded) > 0, "finished with uncounted pods")
	c.refuse(complete != (is.CompletionTime != nil), "completionTime and Complete do not go together")
}

func (c *jobCheck) times() {
	was, is := c.old.Status, c.next.Status
	c.refuse(is.CompletionTime != nil && was.CompletionTime != nil && !is.CompletionTime.Equal(was.CompletionTime), "completionTime changes")
	c.refuse(is.StartTime != nil && is.CompletionTime != nil && is.CompletionTime.Before(is.StartTime), "completionTime before startTime")
	resuming := condition(c.old, batchv1.JobSuspended, "True") && condition(c.next, batchv1.JobSuspended, "False")
	suspended := c.next.Spec.Suspend != nil && *c.next.Spec.Suspend
	c.refuse(was.StartTime != nil && !sameTime(was.StartTime, is.StartTime) && !resuming && !suspended, "startTime changes on an unsuspended job")
}

func (c *jobCheck) indexes() {
	indexed := c.next.Spec.CompletionMode != nil && *c.next.Spec.CompletionMode == batchv1.IndexedCompletion
	c.refuse(c.next.Status.CompletedIndexes != "" && !indexed, "completedIndexes of a job that has none")
	c.refuse(c.next.Status.FailedIndexes != nil && c.next.Spec.BackoffLimitPerIndex == nil, "failedIndexes without backoffLimitPerIndex")
}

func condition(job *batchv1.Job, t batchv1.JobConditionType, status string) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == t {
			return string(c.Status) == status
		}
	}
	return false
}

func elasticIndexed(job *batchv1.Job) bool {
	s := job.Spec
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion && s.Completions != nil && s.Parallelism != nil && *s.Completions == *s.Parallelism
}

func sameTime(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(b)
}

func deref(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}
