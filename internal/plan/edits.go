package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

// followEdits lets what runs on the worker follow what may change meanwhile.
func (v *view) followEdits(p *Plan, w *Worker) {
	v.editJobs(p, w, v.sliced, v.flowed, v.remarked)
	v.followPriority(p, w)
}

// followPriority lets copies that stay take over a changed priority. Whatever its class is worth on the worker does not count.
func (v *view) followPriority(p *Plan, w *Worker) {
	for _, c := range w.Workloads {
		if wl := v.original(c.Name); !equalPtr(c.Spec.Priority, wl.Spec.Priority) && c.DeletionTimestamp.IsZero() {
			p.worker(w.Name, SetPriority{Copy: c, Priority: wl.Spec.Priority})
		}
	}
}

// edit returns what a copy is to become; nil when it is that already.
type edit func(original, current *unstructured.Unstructured) *unstructured.Unstructured

// editJobs makes all edits of a copy in one write.
func (v *view) editJobs(p *Plan, w *Worker, edits ...edit) {
	for _, job := range w.Jobs {
		if v.allEnded(one(job)) || !isThere(job) {
			continue
		}
		want := job
		for _, edit := range edits {
			if next := edit(named(v.Jobs, job.GetName()), want); next != nil {
				want = next
			}
		}
		if want != job {
			p.worker(w.Name, EditJob{Copy: job, Want: want})
		}
	}
}

// sliced gives an elastic job the present slice and its size.
func (v *view) sliced(original, current *unstructured.Unstructured) *unstructured.Unstructured {
	if !v.elastic {
		return nil
	}
	wl := v.Workloads[0]
	return v.Kind.Sliced(current, original, wl, Reservation(wl))
}

func (v *view) flowed(original, current *unstructured.Unstructured) *unstructured.Unstructured {
	return v.Kind.Flowed(original, current)
}

// remarked keeps the mark of a job of many up to date.
func (v *view) remarked(_, current *unstructured.Unstructured) *unstructured.Unstructured {
	if !v.many() || current.GetAnnotations()[kinds.ReservationAnnotation] == v.reservation() {
		return nil
	}
	return kinds.Remarked(current, v.reservation())
}
