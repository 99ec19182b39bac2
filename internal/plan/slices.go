package plan

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// setSlicesApart makes the rules see one slice of an elastic job: the newest
// that has quota. As soon as a slice has quota on the manager, Kueue there
// assigns it to the worker of the one that it replaces, and ends that one.
func (v *view) setSlicesApart() {
	if !v.elastic || len(v.Workloads) == 0 {
		return
	}
	current := slices.MaxFunc(v.Workloads, compareSlices)
	for _, wl := range v.Workloads {
		if wl != current {
			v.slices = append(v.slices, wl)
		}
	}
	if name := kinds.Replaces(current); name != "" && byName(v.slices, name) == nil {
		// Kueue may be told to delete Workloads that are finished, before the next slice runs on the worker.
		v.slices = append(v.slices, &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: current.Namespace, Name: name}})
	}
	v.Workloads = []*kueue.Workload{current}
	for i := range v.Workers {
		v.setSliceCopiesApart(&v.Workers[i])
	}
}

func compareSlices(a, b *kueue.Workload) int {
	return cmp.Or(
		cmp.Compare(standing(a), standing(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(b2i(kinds.Replaces(a) == b.Name), b2i(kinds.Replaces(b) == a.Name)),
		cmp.Compare(a.Name, b.Name),
	)
}

func standing(wl *kueue.Workload) int {
	switch {
	case isTrue(wl, kueue.WorkloadFinished):
		return 0
	case lacksQuota(wl):
		return 1
	default:
		return 2
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v *view) setSliceCopiesApart(w *Worker) {
	var others []*kueue.Workload
	for _, c := range w.Workloads {
		if byName(v.slices, c.Name) == nil {
			others = append(others, c)
		} else {
			v.replaced[w.Name] = append(v.replaced[w.Name], c)
		}
	}
	w.Workloads = others
}

// keepReplaced keeps the copies of earlier slices for as long as they are needed
// there: Kueue stops a job whose Workload is gone, so it must have seen the next one first.
func (v *view) keepReplaced(w *Worker) {
	if len(v.replaced[w.Name]) == 0 {
		return
	}
	var kept []*kueue.Workload
	for _, c := range v.replaced[w.Name] {
		if w.Name == v.claim() && !v.isResliced(w) && isOf(c, byName(v.slices, c.Name)) {
			kept = append(kept, c)
			continue
		}
		v.mayRun[w.Name] = v.mayRun[w.Name] || isTrue(c, kueue.WorkloadAdmitted) && !isTrue(c, kueue.WorkloadFinished)
		v.setApart(w, c, kueue.SchemeGroupVersion.WithKind("Workload"))
	}
	v.replaced[w.Name] = kept
}

// earlier are the slices before the present one, and what is left of their copies on a worker.
func (v *view) earlier(w *Worker) []*kueue.Workload {
	return slices.Concat(v.slices, w.Workloads, v.replaced[w.Name])
}

// isOf tells whether a copy is of this slice; of one that is deleted only the name is known.
func isOf(c, slice *kueue.Workload) bool {
	return slice.UID == "" || originUID(c) == string(slice.UID)
}

// isResliced tells whether Kueue on the worker knows that the job runs by the present slice.
func (v *view) isResliced(w *Worker) bool {
	if len(w.Jobs) == 0 {
		return false
	}
	c := byName(w.Workloads, v.Workloads[0].Name)
	return c != nil && v.hasSlice(w.Jobs[0]) && metav1.IsControlledBy(c, w.Jobs[0])
}

func (v *view) hasSlice(job *unstructured.Unstructured) bool {
	return kinds.LinkedTo(job) == v.Workloads[0].Name
}

// runsBySlice tells whether a job on the worker that holds the claim still runs by
// an earlier slice; if that slice had been evicted meanwhile, the claim would be gone too.
func (v *view) runsBySlice(w *Worker, job *unstructured.Unstructured) bool {
	return w.Name == v.claim() && byName(v.slices, kinds.LinkedTo(job)) != nil
}

// quotaOf are the copies on a worker that its job lives by: those of the present
// Workloads, and of an earlier slice while the next one has no quota there.
func (v *view) quotaOf(w *Worker) []*kueue.Workload {
	var earlier []*kueue.Workload
	for _, c := range v.replaced[w.Name] {
		if len(w.Jobs) > 0 && kinds.LinkedTo(w.Jobs[0]) == c.Name && !isTrue(c, kueue.WorkloadFinished) {
			earlier = append(earlier, c)
		}
	}
	return slices.Concat(w.Workloads, earlier)
}

// grow brings the next slice of a running job to its worker, and tells whether
// there is one on its way: copied, admitted there, and only then the job gets its size.
func (v *view) grow(p *Plan, w *Worker) bool {
	if len(v.slices) == 0 || w.Blind {
		return false
	}
	wl := v.Workloads[0]
	c := byName(w.Workloads, wl.Name)
	if !v.growsOn(w, c) {
		return false
	}
	switch {
	case len(v.waitsFor(wl)) > 0:
		v.say(p, reason.WaitsForChecks(v.waitsFor(wl)))
	case c == nil && v.rests(p, w):
		v.say(p, reason.Grows(w.Name, " ("+w.Why+")"))
	case c == nil:
		p.Because = reason.Grows(w.Name, "")
		v.copyTo(p, w, wl)
	case isTrue(c, kueue.WorkloadAdmitted) && c.DeletionTimestamp.IsZero():
		p.Because = reason.Grows(w.Name, "")
		v.editJobs(p, w, v.sliced)
	default:
		v.say(p, reason.Grows(w.Name, v.progress(w)))
	}
	v.mirrorAll(p, w)
	return true
}

// growsOn: c, the copy of the next slice on the worker, is yet to be made there,
// or the job there still runs by an earlier one.
func (v *view) growsOn(w *Worker, c *kueue.Workload) bool {
	hasJob := len(w.Jobs) > 0
	if c != nil {
		return hasJob && !v.hasSlice(w.Jobs[0])
	}
	return !v.checkIs(v.Workloads[0], kueue.CheckStateReady) && (hasJob || len(v.replaced[w.Name]) > 0)
}

// shrink lets copies that stay follow a Workload that needs less, after the job
// that gives it up. More is asked for by a further slice only.
func (v *view) shrink(p *Plan, w *Worker) {
	if !v.elastic {
		return
	}
	for _, c := range w.Workloads {
		if wl := v.original(c.Name); kinds.Outgrown(wl, c) && c.DeletionTimestamp.IsZero() {
			p.worker(w.Name, Resize{Copy: c, PodSets: wl.Spec.PodSets})
		}
	}
}
