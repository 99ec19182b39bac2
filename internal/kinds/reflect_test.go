package kinds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"ferry.dev/ferry/internal/kinds"
)

// world is a Job on the manager, and its copy on a worker with a model of the
// Job controller there.
type world struct {
	t       *rapid.T
	kind    *kinds.Kind
	now     time.Time
	manager *unstructured.Unstructured
	// worker is nil when there is no copy.
	worker *batchv1.Job
	// skew is how far the clock of the present worker is ahead.
	skew time.Duration
}

// TestReflectIsLegal lets a Job be suspended, started, run, fail, end, vanish
// and run again in any order, and mirrors now and then: Kubernetes accepts every
// status, a second look changes nothing, and what is stopped is shown so.
func TestReflectIsLegal(t *testing.T) {
	kind := kinds.NewTable([]string{"batch/job"}).Rows()[0]
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, kind: kind, now: now}
		w.manager = fromJob(w.spec())
		steps := map[string]func(){
			"mirror": w.mirror, "mirror again": w.mirror, "suspend": w.suspendManager, "resume": w.resumeManager,
			"copy": w.copy, "vanish": w.vanish, "worker starts": w.start, "worker suspends": w.stop,
			"pods change": w.pods, "scale": w.scale, "criterion": w.criterion, "worker ends": w.end, "run": w.run, "lose": w.lose,
		}
		names := []string{"mirror", "mirror again", "suspend", "resume", "copy", "vanish", "worker starts", "worker suspends", "pods change", "scale", "criterion", "worker ends", "run", "lose", "run", "lose"}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			steps[rapid.SampledFrom(names).Draw(t, "step")]()
		}
		w.mirror()
	})
}

// spec draws a Job as a user may write it.
func (w *world) spec() *batchv1.Job {
	completions := int32(rapid.IntRange(0, 5).Draw(w.t, "completions"))
	parallelism := int32(rapid.IntRange(1, 5).Draw(w.t, "parallelism"))
	if rapid.Bool().Draw(w.t, "scalable") {
		parallelism = completions
	}
	mode, yes := batchv1.NonIndexedCompletion, true
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "u"},
		Spec:       batchv1.JobSpec{Completions: &completions, Parallelism: &parallelism, CompletionMode: &mode, Suspend: &yes},
	}
	if rapid.Bool().Draw(w.t, "indexed") {
		mode = batchv1.IndexedCompletion
		if rapid.Bool().Draw(w.t, "perIndex") {
			limit := int32(1)
			job.Spec.BackoffLimitPerIndex = &limit
		}
	}
	return job
}

// mirror applies what Reflect says, as the API server would take it.
func (w *world) mirror() {
	var worker *unstructured.Unstructured
	if w.worker != nil {
		worker = fromJob(w.worker)
	}
	was := w.manager.DeepCopy()
	next := w.manager.DeepCopy()
	next.Object["status"] = w.kind.Reflect(w.manager, worker, w.now)
	mustEqualIn(w.t, "Reflect changed its input", was, w.manager)
	mustBeLegal(w.t, was, next)
	// Through the types and back: what the server leaves out, as zeros, must not matter.
	w.manager = fromJob(toJob(next))
	if again := w.kind.Reflect(w.manager, worker, w.now.Add(time.Hour)); !kinds.SameStatus(w.manager, again) {
		w.t.Errorf("a second look changes the status\nfrom %v\nto   %v", w.manager.Object["status"], again)
	}
	is := toJob(w.manager).Status
	if worker == nil && !ended(toJob(was)) && is.Active+value(is.Ready)+value(is.Terminating) > 0 {
		w.t.Errorf("something is active though nothing runs: %v", w.manager.Object["status"])
	}
	if w.worker != nil && ended(w.worker) && !ended(toJob(w.manager)) {
		w.t.Errorf("the worker's result is not shown: %v", w.manager.Object["status"])
	}
}

func (w *world) suspendManager() { w.setManagerSuspend(true) }

func (w *world) resumeManager() { w.setManagerSuspend(false) }

func (w *world) setManagerSuspend(suspend bool) {
	job := toJob(w.manager)
	job.Spec.Suspend = &suspend
	w.manager = fromJob(job)
}

// scale gives the manager's Job another size than its copy has: an elastic one that the user scales while the copy
// ends, or one that Kueue admits in part, on each cluster as far as quota goes.
func (w *world) scale() {
	job := toJob(w.manager)
	if !indexed(job) || !equal(job.Spec.Completions, job.Spec.Parallelism) || ended(job) {
		return
	}
	size := int32(rapid.IntRange(1, 5).Draw(w.t, "size"))
	job.Spec.Completions, job.Spec.Parallelism = &size, &size
	w.manager = fromJob(job)
}

// copy makes a fresh copy, be it on another worker with another clock.
func (w *world) copy() {
	if w.worker != nil {
		return
	}
	w.skew = time.Duration(rapid.IntRange(-600, 600).Draw(w.t, "skew")) * time.Second
	job := toJob(w.manager).DeepCopy()
	yes := true
	job.Spec.Suspend, job.Status = &yes, batchv1.JobStatus{}
	w.worker = job
	w.condition(batchv1.JobSuspended, "True")
}

func (w *world) vanish() { w.worker = nil }

// run takes the usual way to a job that is seen to run; drawn often, so that
// worlds with several runs are common.
func (w *world) run() {
	w.copy()
	w.start()
	w.resumeManager()
	w.pods()
	w.mirror()
}

// lose takes the copy away, with or without anybody noticing.
func (w *world) lose() {
	w.vanish()
	if rapid.Bool().Draw(w.t, "noticed") {
		w.mirror()
	}
}

func (w *world) running() bool { return w.worker != nil && !ended(w.worker) && !suspended(w.worker) }

func (w *world) start() {
	if w.worker == nil || ended(w.worker) || !suspended(w.worker) {
		return
	}
	w.update(func(s *batchv1.JobStatus) {
		no := false
		w.worker.Spec.Suspend = &no
		s.StartTime = w.time()
		w.condition(batchv1.JobSuspended, "False")
	})
}

func (w *world) stop() {
	if !w.running() || has(w.worker, batchv1.JobSuccessCriteriaMet) || has(w.worker, batchv1.JobFailureTarget) {
		return
	}
	w.update(func(s *batchv1.JobStatus) {
		yes := true
		w.worker.Spec.Suspend = &yes
		if rapid.Bool().Draw(w.t, "at once") {
			s.Active, s.Ready = 0, nil
		} else {
			terminating := s.Active
			s.Ready, s.Terminating = nil, &terminating
		}
		s.StartTime = nil
		w.condition(batchv1.JobSuspended, "True")
	})
}

// pods draws new counters; on a Job that was suspended the last pods only go away.
func (w *world) pods() {
	if w.worker == nil || ended(w.worker) {
		return
	}
	w.update(func(s *batchv1.JobStatus) {
		zero := int32(0)
		if suspended(w.worker) {
			s.Active, s.Ready, s.Terminating = 0, &zero, &zero
			return
		}
		limit := int(*w.worker.Spec.Completions)
		done := rapid.IntRange(min(int(s.Succeeded), limit), limit).Draw(w.t, "succeeded")
		s.Succeeded = int32(done)
		s.Failed += int32(rapid.IntRange(0, 2).Draw(w.t, "more failed"))
		s.Active = int32(rapid.IntRange(0, int(*w.worker.Spec.Parallelism)).Draw(w.t, "active"))
		ready := int32(rapid.IntRange(0, int(s.Active)).Draw(w.t, "ready"))
		terminating := int32(rapid.IntRange(0, 2).Draw(w.t, "terminating"))
		s.Ready, s.Terminating = &ready, &terminating
		s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
		if indexed(w.worker) {
			s.CompletedIndexes = indexes(0, done)
			if w.worker.Spec.BackoffLimitPerIndex != nil {
				failed := indexes(done, limit)
				s.FailedIndexes = &failed
			}
		}
	})
}

func indexes(from, to int) string {
	var parts []string
	for i := from; i < to; i++ {
		parts = append(parts, fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// criterion sets the condition that announces the end.
func (w *world) criterion() {
	if !w.running() || has(w.worker, batchv1.JobSuccessCriteriaMet) || has(w.worker, batchv1.JobFailureTarget) {
		return
	}
	w.update(func(*batchv1.JobStatus) {
		w.condition(rapid.SampledFrom([]batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget}).Draw(w.t, "end"), "True")
	})
}

func (w *world) end() {
	nothingToDo := w.worker != nil && suspended(w.worker) && *w.worker.Spec.Completions == 0
	if !w.running() && !nothingToDo {
		return
	}
	if nothingToDo && !ended(w.worker) {
		w.update(func(*batchv1.JobStatus) { w.condition(batchv1.JobSuccessCriteriaMet, "True") })
	}
	w.criterion()
	if ended(w.worker) {
		return
	}
	w.update(func(s *batchv1.JobStatus) {
		zero := int32(0)
		s.Active, s.Ready, s.Terminating, s.UncountedTerminatedPods = 0, &zero, &zero, nil
		if has(w.worker, batchv1.JobSuccessCriteriaMet) {
			s.CompletionTime = w.time()
			w.condition(batchv1.JobComplete, "True")
		} else {
			w.condition(batchv1.JobFailed, "True")
		}
	})
}

// update changes the worker's status, and insists that the model is legal itself.
func (w *world) update(change func(*batchv1.JobStatus)) {
	was := w.worker.DeepCopy()
	change(&w.worker.Status)
	if broken := violations(was, w.worker); len(broken) > 0 {
		w.t.Fatalf("the model of the worker's Job controller is wrong: %v\nwas %+v\nis  %+v", broken, was.Status, w.worker.Status)
	}
}

func (w *world) time() *metav1.Time {
	at := metav1.NewTime(w.now.Add(w.skew).Truncate(time.Second))
	return &at
}

func (w *world) condition(t batchv1.JobConditionType, status string) {
	s := &w.worker.Status
	c := batchv1.JobCondition{Type: t, Status: "True", Reason: "Model", LastProbeTime: *w.time(), LastTransitionTime: *w.time()}
	c.Status = "True"
	if status != "True" {
		c.Status = "False"
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

func fromJob(job *batchv1.Job) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func mustEqualIn(t *rapid.T, what string, a, b *unstructured.Unstructured) {
	t.Helper()
	if !kinds.SameStatus(a, b.Object["status"].(map[string]any)) {
		t.Errorf("%s: %v, was %v", what, b.Object["status"], a.Object["status"])
	}
}
