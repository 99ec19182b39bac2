package kinds_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// jobRule is one thing that Kubernetes 1.36 demands of an update of a Job's
// status. The facts are from its registry and validation packages for batch.
type jobRule struct {
	says   string
	broken func(was, is *batchv1.Job) bool
}

var jobRules = []jobRule{
	{"counters are not negative", func(_, is *batchv1.Job) bool {
		s := is.Status
		return min(s.Active, s.Succeeded, s.Failed, value(s.Ready), value(s.Terminating)) < 0
	}},
	{"failed does not fall", func(was, is *batchv1.Job) bool { return is.Status.Failed < was.Status.Failed }},
	{"succeeded does not fall, unless the Job can be scaled down", func(was, is *batchv1.Job) bool {
		return is.Status.Succeeded < was.Status.Succeeded && !(indexed(is) && equal(is.Spec.Completions, is.Spec.Parallelism))
	}},
	{"a terminal condition stays", func(was, is *batchv1.Job) bool {
		for _, c := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
			if has(was, c) && !has(is, c) {
				return true
			}
		}
		return false
	}},
	{"SuccessCriteriaMet does not come after Complete", func(was, is *batchv1.Job) bool {
		return has(was, batchv1.JobComplete) && !has(was, batchv1.JobSuccessCriteriaMet) && has(is, batchv1.JobSuccessCriteriaMet)
	}},
	{"success and failure exclude each other", func(_, is *batchv1.Job) bool {
		success := has(is, batchv1.JobSuccessCriteriaMet) || has(is, batchv1.JobComplete)
		failure := has(is, batchv1.JobFailureTarget) || has(is, batchv1.JobFailed)
		return success && failure
	}},
	{"Failed needs FailureTarget", func(was, is *batchv1.Job) bool {
		return has(is, batchv1.JobFailed) && !has(is, batchv1.JobFailureTarget) &&
			(changed(was, is, batchv1.JobFailed) || !equal(was.Status.FailedIndexes, is.Status.FailedIndexes))
	}},
	{"Complete needs SuccessCriteriaMet", func(was, is *batchv1.Job) bool {
		return has(is, batchv1.JobComplete) && !has(is, batchv1.JobSuccessCriteriaMet) &&
			(changed(was, is, batchv1.JobComplete) || changed(was, is, batchv1.JobSuccessCriteriaMet))
	}},
	{"Complete and completionTime come together", func(was, is *batchv1.Job) bool {
		checked := changed(was, is, batchv1.JobComplete) || timeChanged(was.Status.CompletionTime, is.Status.CompletionTime)
		return checked && has(is, batchv1.JobComplete) != (is.Status.CompletionTime != nil)
	}},
	{"completionTime does not move", func(was, is *batchv1.Job) bool {
		return was.Status.CompletionTime != nil && is.Status.CompletionTime != nil && timeChanged(was.Status.CompletionTime, is.Status.CompletionTime)
	}},
	{"completionTime is not before startTime", func(was, is *batchv1.Job) bool {
		start, end := is.Status.StartTime, is.Status.CompletionTime
		checked := timeChanged(was.Status.StartTime, start) || timeChanged(was.Status.CompletionTime, end)
		return checked && start != nil && end != nil && end.Before(start)
	}},
	{"startTime is fixed, unless suspended or resuming", func(was, is *batchv1.Job) bool {
		resuming := has(was, batchv1.JobSuspended) && conditionOf(is, batchv1.JobSuspended) == "False"
		return was.Status.StartTime != nil && timeChanged(was.Status.StartTime, is.Status.StartTime) && !suspended(is) && !resuming
	}},
	{"a finished Job has a startTime", func(was, is *batchv1.Job) bool {
		excused := suspended(is) && is.Spec.Completions != nil && *is.Spec.Completions == 0
		checked := ended(was) != ended(is) || timeChanged(was.Status.StartTime, is.Status.StartTime)
		return checked && !excused && ended(is) && is.Status.StartTime == nil
	}},
	{"nothing of a finished Job is active", func(was, is *batchv1.Job) bool {
		return ended(is) && is.Status.Active > 0 && (!ended(was) || was.Status.Active != is.Status.Active)
	}},
	{"nothing of a finished Job is terminating", func(was, is *batchv1.Job) bool {
		return ended(is) && value(is.Status.Terminating) > 0 && (!ended(was) || !equal(was.Status.Terminating, is.Status.Terminating))
	}},
	{"no pod of a finished Job is uncounted", func(was, is *batchv1.Job) bool {
		u := is.Status.UncountedTerminatedPods
		return ended(is) && u != nil && len(u.Failed)+len(u.Succeeded) > 0 &&
			(!ended(was) || !reflect.DeepEqual(was.Status.UncountedTerminatedPods, u))
	}},
	{"not more pods are ready than active", func(was, is *batchv1.Job) bool {
		checked := was.Status.Active != is.Status.Active || !equal(was.Status.Ready, is.Status.Ready)
		return checked && value(is.Status.Ready) > is.Status.Active
	}},
	{"completedIndexes are those of an Indexed Job, and below completions", func(was, is *batchv1.Job) bool {
		c := is.Status.CompletedIndexes
		return c != was.Status.CompletedIndexes && c != "" && (!indexed(is) || !withinCompletions(is, c))
	}},
	{"failedIndexes need backoffLimitPerIndex, and are below completions", func(was, is *batchv1.Job) bool {
		f := is.Status.FailedIndexes
		return f != nil && !equal(f, was.Status.FailedIndexes) && (is.Spec.BackoffLimitPerIndex == nil || !withinCompletions(is, *f))
	}},
	{"no index is completed and failed", func(was, is *batchv1.Job) bool {
		f := is.Status.FailedIndexes
		if f == nil || (equal(f, was.Status.FailedIndexes) && was.Status.CompletedIndexes == is.Status.CompletedIndexes) {
			return false
		}
		completed, _ := indexSet(is.Status.CompletedIndexes)
		failed, _ := indexSet(*f)
		for i := range failed {
			if completed[i] {
				return true
			}
		}
		return false
	}},
}

// violations names the rules that an update of the status from was to is breaks.
func violations(was, is *batchv1.Job) []string {
	var broken []string
	for _, r := range jobRules {
		if r.broken(was, is) {
			broken = append(broken, r.says)
		}
	}
	return broken
}

func mustBeLegal(t interface {
	Helper()
	Errorf(string, ...any)
}, was, is *unstructured.Unstructured) {
	t.Helper()
	if broken := violations(toJob(was), toJob(is)); len(broken) > 0 {
		t.Errorf("Kubernetes would refuse the status: %s\nwas: %v\nis:  %v", strings.Join(broken, "; "), was.Object["status"], is.Object["status"])
	}
}

func toJob(u *unstructured.Unstructured) *batchv1.Job {
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, job); err != nil {
		panic(fmt.Sprintf("not a Job: %v", err))
	}
	return job
}

func conditionOf(job *batchv1.Job, t batchv1.JobConditionType) string {
	for _, c := range job.Status.Conditions {
		if c.Type == t {
			return string(c.Status)
		}
	}
	return ""
}

func has(job *batchv1.Job, t batchv1.JobConditionType) bool { return conditionOf(job, t) == "True" }

func changed(was, is *batchv1.Job, t batchv1.JobConditionType) bool { return has(was, t) != has(is, t) }

func ended(job *batchv1.Job) bool {
	return has(job, batchv1.JobComplete) || has(job, batchv1.JobFailed)
}

func suspended(job *batchv1.Job) bool { return job.Spec.Suspend != nil && *job.Spec.Suspend }

func indexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func equal[T comparable](a, b *T) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

func timeChanged(a, b *metav1.Time) bool { return !a.Equal(b) }

func withinCompletions(job *batchv1.Job, indexes string) bool {
	set, err := indexSet(indexes)
	if err != nil {
		return false
	}
	for i := range set {
		if job.Spec.Completions != nil && i >= int(*job.Spec.Completions) {
			return false
		}
	}
	return true
}

// indexSet reads the form "0,2-4".
func indexSet(s string) (map[int]bool, error) {
	set := map[int]bool{}
	if s == "" {
		return set, nil
	}
	for _, part := range strings.Split(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				return nil, err
			}
		}
		for i := first; i <= last; i++ {
			set[i] = true
		}
	}
	return set, nil
}

// TestJobRulesBite: the checker itself finds what it should.
func TestJobRulesBite(t *testing.T) {
	job := func(f func(*batchv1.Job)) *batchv1.Job { j := &batchv1.Job{}; f(j); return j }
	plain := job(func(*batchv1.Job) {})
	start := metav1.NewTime(now)
	for name, c := range map[string]struct{ was, is *batchv1.Job }{
		"failed fell":    {job(func(j *batchv1.Job) { j.Status.Failed = 1 }), plain},
		"succeeded fell": {job(func(j *batchv1.Job) { j.Status.Succeeded = 1 }), plain},
		"start moved":    {job(func(j *batchv1.Job) { j.Status.StartTime = &start }), plain},
		"ready":          {plain, job(func(j *batchv1.Job) { one := int32(1); j.Status.Ready = &one })},
		"index":          {plain, job(func(j *batchv1.Job) { j.Status.CompletedIndexes = "0" })},
		"complete alone": {plain, job(func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}
		})},
		"failed alone": {plain, job(func(j *batchv1.Job) {
			j.Status.StartTime = &start
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True"}}
		})},
	} {
		if len(violations(c.was, c.is)) == 0 {
			t.Errorf("%s: no rule broken", name)
		}
		if broken := violations(c.was, c.was); len(broken) > 0 {
			t.Errorf("%s: an unchanged status breaks %v", name, broken)
		}
	}
}
