package plan

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// quiet is how long Ferry waits before it writes what only informs: most jobs
// move on sooner, and the write would have been for nothing.
const quiet = 2 * time.Second

// view is a Snapshot with the objects of an earlier time set apart.
type view struct {
	Snapshot
	// known are the Workloads before any is set apart.
	known []*kueue.Workload
	// stale are the copies on reachable workers that belong to an earlier
	// reservation or an earlier job of the same name.
	stale map[string][]Action
	// mayRun are the reachable workers on which the job of an earlier reservation may run.
	mayRun map[string]bool
	// leaving are the workers where a member that left its group has not ended yet.
	leaving map[string]bool
	// told are the workers outside the config that have objects with the UIDs of this very job: they were offered it.
	told map[string]bool
	// result is where the job is over, if anywhere.
	result *result
	// joining are the Workloads that came to a job of many while a worker runs it, and
	// joined their copies there; see setJoinersApart.
	joining []*kueue.Workload
	joined  map[string][]*kueue.Workload
	// slices are the other Workloads of an elastic job than the present one, and
	// replaced their copies that are still needed; see setSlicesApart.
	slices   []*kueue.Workload
	replaced map[string][]*kueue.Workload
	// marksOf are the marks of present copies, by the UID of the manager's Workload: computed once for all workers.
	marksOf map[types.UID]*copyMarks
	// elastic tells whether the job's Workloads are slices, of which each replaces the one before it.
	elastic bool
}

// copyMarks are what the copy of a Workload has to be marked with.
type copyMarks struct{ reservation, specHash string }

func (v *view) marksFor(wl *kueue.Workload) *copyMarks {
	m := v.marksOf[wl.UID]
	if m == nil {
		m = &copyMarks{reservation: Reservation(wl), specHash: v.specHash(wl)}
		v.marksOf[wl.UID] = m
	}
	return m
}

func (v *view) specHash(wl *kueue.Workload) string {
	if hash := v.SpecHashes[wl.UID]; hash != "" {
		return hash
	}
	return kinds.SpecHash(wl)
}

func newView(s Snapshot) *view {
	v := &view{
		Snapshot: s, known: s.Workloads, stale: map[string][]Action{}, mayRun: map[string]bool{}, leaving: map[string]bool{}, joined: map[string][]*kueue.Workload{},
		replaced: map[string][]*kueue.Workload{}, marksOf: map[types.UID]*copyMarks{},
	}
	v.elastic = v.Kind != nil && len(v.Jobs) == 1 && v.Kind.Elastic(v.Jobs[0])
	v.Workers = slices.Clone(s.Workers)
	v.setJoinersApart()
	v.setSlicesApart()
	if v.Unseen != "" {
		return v // what belongs to the job cannot be told from what is left of an earlier one
	}
	v.result = v.findResult()
	for i := range v.Workers {
		v.setStaleApart(&v.Workers[i])
	}
	return v
}

// Reservation identifies the Workload's present quota reservation: it is
// another one after every eviction, also after one that nobody saw. The time
// alone would not do, since Kueue evicts and reserves again within a second.
// Empty when no quota is reserved.
func Reservation(wl *kueue.Workload) string {
	reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil || reserved.Status != metav1.ConditionTrue {
		return ""
	}
	return strconv.FormatInt(Evictions(wl), 10) + "-" + strconv.FormatInt(reserved.LastTransitionTime.Unix(), 10)
}

func (v *view) marks(w *Worker, wl *kueue.Workload) kinds.Marks {
	return kinds.Marks{Origin: v.Policy.Origin, Worker: w.Name, Reservation: Reservation(wl)}
}

// setStaleApart hides from the rules what is not of the present reservation,
// and offers that can come to nothing.
func (v *view) setStaleApart(w *Worker) {
	var current []*kueue.Workload
	for i, c := range w.Workloads {
		wl := v.original(c.Name)
		v.noteTold(w, wl != nil && originUID(c) == string(wl.UID))
		switch {
		case v.isCurrent(w, c):
			if len(current) == i {
				current = w.Workloads[: i+1 : i+1] // as nearly always: nothing is left out
				continue
			}
			current = append(current, c)
		case v.isJoining(w, c):
			v.joined[w.Name] = append(v.joined[w.Name], c)
		default:
			// Somebody may be about to create an admitted one's job: it could have been the winner.
			v.mayRun[w.Name] = v.mayRun[w.Name] || isTrue(c, kueue.WorkloadAdmitted)
			v.setApart(w, c, kueue.SchemeGroupVersion.WithKind("Workload"))
		}
	}
	w.Workloads = current
	v.setStaleJobsApart(w)
}

// isCurrent: the copy is of the present reservation, and runs or can win.
func (v *view) isCurrent(w *Worker, c *kueue.Workload) bool {
	wl := v.original(c.Name)
	return wl != nil && isCopyOf(c, wl.UID, v.marksFor(wl).reservation) && (w.Name == v.claim() || v.isOpen(c, wl))
}

// isJoining: the copy is of a Workload that comes to a job while the worker runs it.
func (v *view) isJoining(w *Worker, c *kueue.Workload) bool {
	wl := byName(v.joining, c.Name)
	return wl != nil && w.Name == v.claim() && isCopyOf(c, wl.UID, Reservation(wl)) && v.isOpen(c, wl)
}

func (v *view) setStaleJobsApart(w *Worker) {
	var jobs []*unstructured.Unstructured
	for _, job := range w.Jobs {
		v.noteTold(w, !v.isOfAnother(job))
		if v.jobIsCurrent(w, job) {
			jobs = append(jobs, job)
			continue
		}
		v.mayRun[w.Name] = true
		v.leaving[w.Name] = v.leaving[w.Name] || v.Kind != nil && v.Kind.Group && !v.allEnded(one(job))
		v.setApart(w, job, job.GroupVersionKind())
	}
	w.Jobs = jobs
	v.keepReplaced(w)
}

// setApart notes an object for removal, a job before its Workloads.
func (v *view) setApart(w *Worker, obj metav1.Object, gvk schema.GroupVersionKind) {
	v.stale[w.Name] = append(v.stale[w.Name], deleteOf(obj, gvk))
	if gvk.Kind != "Workload" {
		last := len(v.stale[w.Name]) - 1
		v.stale[w.Name] = append([]Action{v.stale[w.Name][last]}, v.stale[w.Name][:last]...)
	}
}

// isOpen tells whether an offer can still win. One that Kueue ended, or evicted
// (without its job it never goes back to the queue), or that is not what the
// manager wants any more, has to be made anew; an evicted one after a while, as
// what evicted it is likely to do so again.
func (v *view) isOpen(c, wl *kueue.Workload) bool {
	return !isTrue(c, kueue.WorkloadFinished) && (!isTrue(c, kueue.WorkloadEvicted) || v.restLeft(c) > 0) && !v.drifted(c, wl)
}

// rest is how long an offer that was evicted on its worker is left alone.
const rest = 30 * time.Second

// restLeft is how much of its rest an evicted offer has left.
func (v *view) restLeft(c *kueue.Workload) time.Duration {
	if !isTrue(c, kueue.WorkloadEvicted) {
		return 0
	}
	return min(v.since(c, kueue.WorkloadEvicted).Add(rest).Sub(v.Now), rest)
}

func (v *view) jobIsCurrent(w *Worker, job *unstructured.Unstructured) bool {
	on := named(v.Jobs, job.GetName())
	if on == nil || len(v.Workloads) == 0 {
		return false
	}
	if v.elastic && !v.hasSlice(job) {
		// Two slices may get their quota within one second, so the mark alone would not tell.
		return originUID(job) == string(on.GetUID()) && v.runsBySlice(w, job)
	}
	if v.many() {
		return originUID(job) == string(on.GetUID()) && v.sharesReservation(job)
	}
	return isCopyOf(job, on.GetUID(), Reservation(v.Workloads[0]))
}

func isCopyOf(c metav1.Object, uid types.UID, reservation string) bool {
	a := c.GetAnnotations()
	return a[kueue.MultiKueueOriginUIDAnnotation] == string(uid) && a[kinds.ReservationAnnotation] == reservation && reservation != ""
}

// removeStale adds the removal of stale copies to the plan, whatever it is.
func (v *view) removeStale(p *Plan) {
	for _, w := range v.Workers {
		if w.Reachable {
			p.worker(w.Name, live(v.stale[w.Name])...)
		}
	}
}

// original is the manager's Workload of this name.
func (v *view) original(name string) *kueue.Workload { return byName(v.Workloads, name) }

func byName(wls []*kueue.Workload, name string) *kueue.Workload {
	for _, wl := range wls {
		if wl.Name == name {
			return wl
		}
	}
	return nil
}

// named finds an object by its name; nil when it is not there.
func named(objects []*unstructured.Unstructured, name string) *unstructured.Unstructured {
	for _, obj := range objects {
		if obj.GetName() == name {
			return obj
		}
	}
	return nil
}

func (v *view) find(name string) *Worker {
	for i := range v.Workers {
		if v.Workers[i].Name == name {
			return &v.Workers[i]
		}
	}
	return nil
}

// claim is the worker that the manager's Workloads are assigned to.
func (v *view) claim() string {
	for _, wl := range v.Workloads {
		if wl.Status.ClusterName != nil {
			return *wl.Status.ClusterName
		}
	}
	return ""
}

// check is our admission check's state on a Workload; nil when it is not there.
func (v *view) check(wl *kueue.Workload) *kueue.AdmissionCheckState {
	for i := range wl.Status.AdmissionChecks {
		if wl.Status.AdmissionChecks[i].Name == v.Check {
			return &wl.Status.AdmissionChecks[i]
		}
	}
	return nil
}

func (v *view) checkIs(wl *kueue.Workload, states ...kueue.CheckState) bool {
	c := v.check(wl)
	return c != nil && slices.Contains(states, c.State)
}

func (v *view) any(f func(*kueue.Workload) bool) bool { return slices.ContainsFunc(v.Workloads, f) }

func (v *view) all(f func(*kueue.Workload) bool) bool {
	return !v.any(func(wl *kueue.Workload) bool { return !f(wl) })
}

// copies are the worker's present copies, one for each Workload; nil when one is missing.
func (v *view) copies(w *Worker) []*kueue.Workload {
	if len(w.Workloads) < len(v.Workloads) {
		return nil
	}
	return w.Workloads
}

// removeFrom lets a reachable worker remove everything that is ours.
func (v *view) removeFrom(p *Plan, w *Worker) {
	if !w.Reachable {
		return
	}
	var actions []Action
	for _, job := range w.Jobs {
		actions = append(actions, deleteOf(job, job.GroupVersionKind()))
	}
	for _, c := range slices.Concat(w.Workloads, v.joined[w.Name], v.replaced[w.Name]) {
		actions = append(actions, deleteOf(c, kueue.SchemeGroupVersion.WithKind("Workload")))
	}
	p.worker(w.Name, live(actions)...)
}

func (v *view) removeFromAllBut(p *Plan, keep ...string) {
	for i := range v.Workers {
		if !slices.Contains(keep, v.Workers[i].Name) {
			v.removeFrom(p, &v.Workers[i])
		}
	}
}

// holds tells whether something of ours is seen on the worker, be it on its way out.
func (v *view) holds(w *Worker) bool {
	return len(w.Jobs) > 0 || len(w.Workloads) > 0 || len(v.stale[w.Name]) > 0
}

// graceLeft is how long a worker that cannot be read may still come back. As long as
// connecting takes, one that was not read yet is not lost, nor one that is read again.
func (v *view) graceLeft(w *Worker) time.Duration {
	grace := v.Policy.WorkerLostTimeout
	if w.Unread || w.Blind {
		grace = max(grace, v.Policy.FirstConnect)
	}
	return w.LostSince.Add(grace).Sub(v.Now)
}

func isTrue(wl *kueue.Workload, condition string) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, condition)
}

// deleteOf is nil for an object that is already being deleted.
func deleteOf(obj metav1.Object, gvk schema.GroupVersionKind) Action {
	if !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	d := Delete{GVK: gvk, Key: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, UID: obj.GetUID()}
	if gvk.Kind != "Workload" {
		d.Version = obj.GetResourceVersion()
	}
	return d
}

func live(actions []Action) []Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a Action) bool { return a == nil })
}
