package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// kueueFinishes is how long Kueue on the manager gets to finish the Workload
// itself, which it does once it sees the job's final status. Writing at the same
// moment would only make one of the two writes fail.
const kueueFinishes = 3 * time.Second

var finishedOnWorker = Rule{
	Name: "FinishedOnWorker",
	Doc:  "The job is over on a worker that has the claim, or had it, whatever became of its quota meanwhile: its status comes back first, and nobody else is asked any more. Then the manager's Workload ends; normally Kueue there does that on seeing the job's final status, else Ferry. Does the manager's API server refuse that status, the Workload ends all the same, and its message says so.",
	decide: func(v *view, p *Plan) bool {
		r := v.result
		if r == nil {
			return false
		}
		p.Because = fmt.Sprintf("The job finished on worker %q", r.worker)
		v.removeFromAllBut(p, r.worker)
		delete(v.stale, r.worker)
		refused := v.refusedFor(r.jobs)
		if refused != "" || !v.mirrorJobs(p, r.jobs) && v.mayBeOver(r.jobs...) {
			// Otherwise the Workload's end was seen first: the two come by separate watches.
			v.finishWorkloads(p, r, refused)
		}
		return true
	},
}

// result is a job that is over on a worker, with the copies of its Workloads.
type result struct {
	worker string
	jobs   []*unstructured.Unstructured
	copies []*kueue.Workload
}

// findResult looks for a worker on which this very job is over. The result
// counts also when the quota that it ran on is no longer reserved: the work is done. See mayEnd for whose word counts.
// Should there be several, the claim's comes first, then the earliest.
func (v *view) findResult() *result {
	var found *result
	for i := range v.Workers {
		w := &v.Workers[i]
		if !w.Reachable || !v.isOver(w) {
			continue
		}
		r := &result{worker: w.Name, jobs: w.Jobs, copies: w.Workloads}
		if found == nil || v.comesBefore(r, found) {
			found = r
		}
	}
	return found
}

func (v *view) comesBefore(a, b *result) bool {
	if claim := v.claim(); a.worker == claim || b.worker == claim {
		return a.worker == claim
	}
	if x, y := v.endedAt(a), v.endedAt(b); !x.Equal(y) {
		return x.Before(y)
	}
	return a.worker < b.worker
}

func (v *view) endedAt(r *result) time.Time {
	var last time.Time
	for _, c := range r.copies {
		if at := v.since(c, kueue.WorkloadFinished); at.After(last) {
			last = at
		}
	}
	return last
}

func (v *view) isOver(w *Worker) bool {
	if v.Kind == nil || len(v.Jobs) == 0 || len(w.Jobs) == 0 || len(v.Workloads) == 0 {
		return false
	}
	if slices.ContainsFunc(w.Jobs, v.isOfAnother) {
		return false
	}
	if len(w.Workloads) == 0 {
		return v.endedAlone(w)
	}
	return !slices.ContainsFunc(w.Workloads, func(c *kueue.Workload) bool { return !v.endsJob(w, c) })
}

// endsJob: the copy is of a Workload of this very job, and its end is a result that counts.
func (v *view) endsJob(w *Worker, c *kueue.Workload) bool {
	wl := v.original(c.Name)
	return wl != nil && originUID(c) == string(wl.UID) && v.endOf(w, c) == isResult && v.mayEnd(w, c)
}

// endedAlone: Kueue on the worker may be told to delete Workloads some time after their end, which nobody may have
// seen meanwhile. Then the job itself says it, unless it was told to stop. As soon as the manager shows it, it is Over.
func (v *view) endedAlone(w *Worker) bool {
	isOld := func(job *unstructured.Unstructured) bool { return !isThere(job) || !v.jobIsCurrent(w, job) }
	return w.Name == v.claim() && v.allEnded(w.Jobs) && v.Kind.Whole(w.Jobs) && !slices.ContainsFunc(w.Jobs, isOld) && !v.allEnded(v.Jobs)
}

// isOfAnother tells whether a job's copy has no original on the manager, or one that was made anew.
func (v *view) isOfAnother(job *unstructured.Unstructured) bool {
	on := named(v.Jobs, job.GetName())
	return on == nil || originUID(job) != string(on.GetUID())
}

func originUID(obj metav1.Object) string {
	return obj.GetAnnotations()[kueue.MultiKueueOriginUIDAnnotation]
}

// finishWorkloads ends the manager's Workloads as Kueue on the worker ended theirs; refused is why the job's own
// status cannot say so, if it cannot.
func (v *view) finishWorkloads(p *Plan, r *result, refused string) {
	for _, c := range r.copies {
		wl := v.original(c.Name)
		if isTrue(wl, kueue.WorkloadFinished) {
			continue
		}
		f := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadFinished)
		if left := v.since(c, kueue.WorkloadFinished).Add(kueueFinishes).Sub(v.Now); left > 0 {
			p.again(min(left, kueueFinishes))
			continue
		}
		p.manager(Finish{Workload: wl, Reason: v.resultOf(f, r.jobs), Message: reason.Result(f.Message, refused)})
	}
}

// resultOf is Kueue's reason for the end, success or failure, also where the job's own status decided.
func (v *view) resultOf(f *metav1.Condition, jobs []*unstructured.Unstructured) string {
	switch {
	case saysResult(f.Reason):
		return f.Reason
	case slices.ContainsFunc(jobs, kinds.Failed):
		return kueue.WorkloadFinishedReasonFailed
	default:
		return kueue.WorkloadFinishedReasonSucceeded
	}
}
