package world

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// book is the history that the invariants are about. Ferry knows nothing of it.
type book struct {
	// claims and nominations are all that were ever persisted.
	claims, nominations map[offer]bool
	// admitted and placed are all copies that ever were, of Workloads once admitted and of jobs.
	admitted, placed map[offer]bool
	// clear tells for which jobs Ferry had its chance on a worker since that
	// worker was last out of reach: its lane ran on caches that showed
	// everything, and its writes went through. Before, what runs there is not
	// Ferry's to answer for.
	clear map[string]map[string]bool
	// results are the ends of jobs on the worker that held their claim, by the UID on the manager.
	results map[types.UID]result
	// killed are the pods of which a copy was deleted on its worker before it ended, by their UIDs on the manager.
	killed map[types.UID]bool
	truth  truth
}

type offer struct{ workload, reservation, worker string }

type result struct {
	worker  string
	success bool
}

func newBook() *book {
	return &book{
		claims: map[offer]bool{}, nominations: map[offer]bool{}, admitted: map[offer]bool{}, placed: map[offer]bool{},
		clear: map[string]map[string]bool{}, results: map[types.UID]result{}, killed: map[types.UID]bool{}, truth: truth{},
	}
}

// doubt forgets what Ferry could know about a worker.
func (b *book) doubt(worker string) {
	delete(b.clear, worker)
	for uid, r := range b.results {
		if r.worker == worker {
			// It may be gone before Ferry sees it again.
			delete(b.results, uid)
		}
	}
}

// noteManager keeps what was persisted, and checks the end of jobs.
func (w *World) noteManager(e cluster.Event) {
	switch obj := e.New.(type) {
	case *kueue.Workload:
		w.noteOffers(obj)
		w.checkOneHome(obj)
		if was, ok := e.Old.(*kueue.Workload); ok {
			w.noteEviction(was, obj)
			if finished(obj) && !finished(was) {
				w.checkTrueFinish(obj)
			}
		}
	case *unstructured.Unstructured:
		w.noteEnd(e.Old, obj)
	}
}

func (w *World) noteOffers(wl *kueue.Workload) {
	at := offer{wl.Name, plan.Reservation(wl), ""}
	for _, name := range wl.Status.NominatedClusterNames {
		at.worker = name
		w.book.nominations[at] = true
	}
	if wl.Status.ClusterName != nil {
		at.worker = *wl.Status.ClusterName
		w.book.claims[at] = true
		w.book.claims[ofSet(at, wl)] = true
	}
}

// ofSet is the offer that stands for all Workloads of a set with a reservation, as
// the copy of the set names no Workload; the same for others.
func ofSet(at offer, wl *kueue.Workload) offer {
	if kinds.ReplicaOf(wl) >= 0 {
		at.workload = string(wl.OwnerReferences[0].UID)
	}
	return at
}

// noteEviction: whoever takes the job back on the manager before the result came there gives the result up.
func (w *World) noteEviction(old, wl *kueue.Workload) {
	if takenBack(wl) && !takenBack(old) {
		for _, owner := range wl.OwnerReferences {
			delete(w.book.results, owner.UID)
		}
	}
}

func takenBack(wl *kueue.Workload) bool {
	state := checkState(wl)
	return hasTrue(wl, kueue.WorkloadEvicted) || state == kueue.CheckStateRetry || state == kueue.CheckStateRejected
}

// noteEnd: the manager's job must end as its copy did.
func (w *World) noteEnd(old client.Object, job *unstructured.Unstructured) {
	ended, success := kueuemodel.Ended(job)
	if was, ok := old.(*unstructured.Unstructured); !ended || !ok {
		return
	} else if before, _ := kueuemodel.Ended(was); before {
		return
	}
	w.checkTrue(job, "the end")
	if r, known := w.book.results[job.GetUID()]; known && r.success != success {
		w.Violation("invariant 4: job %s ended with success=%v on %s, and with success=%v on the manager", job.GetName(), r.success, r.worker, success)
	}
	if isPod(job) && serves(job) && !w.book.killed[job.GetUID()] {
		w.Violation("invariant 4: pod %s, which has no end, failed on the manager, though nobody deleted it on a worker", job.GetName())
	}
}

// noteWorker keeps the results, and checks who runs.
func (w *World) noteWorker(worker *Worker, e cluster.Event) {
	if worker.Name == Liar {
		return
	}
	if pod, is := e.Old.(*unstructured.Unstructured); is && isPod(pod) && e.New == nil && ours(pod) && !endedAlready(pod) {
		w.book.killed[origin(pod)] = true
	}
	if e.New == nil || cluster.IsPart(e.New) || !ours(e.New) {
		return
	}
	if wl, isWorkload := e.New.(*kueue.Workload); isWorkload {
		w.checkGate(worker, wl)
	}
	if wl, isWorkload := e.New.(*kueue.Workload); isWorkload && hasTrue(wl, kueue.WorkloadAdmitted) {
		w.book.admitted[offersOf(worker.Name, wl)[0]] = true
	}
	job, isJob := e.New.(*unstructured.Unstructured)
	if !isJob {
		return
	}
	w.book.truth.note(job)
	for _, at := range offersOf(worker.Name, job) {
		w.book.placed[at] = true
	}
	was, _ := e.Old.(*unstructured.Unstructured)
	uid := origin(job)
	ended, success := kueuemodel.Ended(job)
	if ended && !endedAlready(was) && w.countsAsResult(worker, job) {
		w.book.results[uid] = result{worker.Name, success}
	}
	if running(job) && (was == nil || !running(was)) {
		w.checkRestart(worker, job)
		w.checkRunning(uid)
	}
}

// countsAsResult: the end of a copy is the job's own, unless somebody on the worker took its Workload away.
func (w *World) countsAsResult(worker *Worker, job *unstructured.Unstructured) bool {
	wl := worker.Kueue.WorkloadOf(job)
	return wl != nil && !finished(wl) && w.holdsClaim(worker.Name, job) && w.isClear(worker.Name, job.GetName())
}

// offersOf is what a copy was made for: the copy of a set for several Workloads at once.
func offersOf(worker string, obj client.Object) []offer {
	workload := obj.GetName()
	if job, isJob := obj.(*unstructured.Unstructured); isJob {
		workload = job.GetLabels()[kinds.PrebuiltWorkload]
		if job.GetKind() == cluster.Set.Kind {
			workload = string(origin(job))
		}
	}
	var offers []offer
	for _, reservation := range reservations(obj) {
		offers = append(offers, offer{workload, reservation, worker})
	}
	return offers
}

// reservations are those that a copy was made for.
func reservations(obj client.Object) []string {
	return strings.Split(obj.GetAnnotations()[kinds.ReservationAnnotation], ",")
}

func endedAlready(job *unstructured.Unstructured) bool {
	if job == nil {
		return false
	}
	ended, _ := kueuemodel.Ended(job)
	return ended
}

// checkRestart is the second half of invariant 4: what is finished never runs again.
func (w *World) checkRestart(worker *Worker, job *unstructured.Unstructured) {
	if !w.isClear(worker.Name, job.GetName()) {
		return
	}
	if r, known := w.book.results[origin(job)]; known {
		w.Violation("invariant 4: job %s finished on %s and starts again on %s", job.GetName(), r.worker, worker.Name)
	}
	if on := w.Manager.Job(job.GetNamespace(), job.GetName()); on != nil && on.GetUID() == origin(job) && endedAlready(on) {
		w.Violation("invariant 4: job %s is finished on the manager and starts again on %s", job.GetName(), worker.Name)
	}
}

// checkRunning is invariant 1.
func (w *World) checkRunning(uid types.UID) {
	var on []string
	for _, name := range w.names {
		for _, job := range w.workers[name].Cluster.Jobs() {
			if name != Liar && ours(job) && origin(job) == uid && running(job) && w.isClear(name, job.GetName()) {
				on = append(on, name)
			}
		}
	}
	if len(on) > 1 {
		w.Violation("invariant 1: job %s runs on %v at once", uid, on)
	}
}

// running: the object may have pods.
func running(job *unstructured.Unstructured) bool {
	ended, _ := kueuemodel.Ended(job)
	return !ended && !kueuemodel.Suspended(job) && job.GetDeletionTimestamp() == nil
}

func ours(obj client.Object) bool {
	return kinds.Ours(obj) && obj.GetLabels()[kueue.MultiKueueOriginLabel] == Origin
}

func origin(obj client.Object) types.UID {
	return types.UID(obj.GetAnnotations()[kueue.MultiKueueOriginUIDAnnotation])
}

func (w *World) isClear(worker, job string) bool {
	return !w.workers[worker].Cut && w.book.clear[worker][job]
}

// holdsClaim tells whether a copy is the one that the manager's Workload, or one of several, is assigned to now.
func (w *World) holdsClaim(worker string, job *unstructured.Unstructured) bool {
	on := w.Manager.Job(job.GetNamespace(), job.GetName())
	if on == nil || on.GetUID() != origin(job) {
		return false
	}
	return slices.ContainsFunc(w.Kueue.WorkloadsOf(on), func(wl *kueue.Workload) bool {
		return !takenBack(wl) && wl.Status.ClusterName != nil && *wl.Status.ClusterName == worker &&
			slices.Contains(reservations(job), plan.Reservation(wl))
	})
}

// afterReconcile notes that Ferry had its chance with a job on a worker.
func (w *World) afterReconcile(queue string, ref kinds.Ref) {
	if queue == dispatchQueue || queue == mirrorQueue || w.ferry == nil {
		return
	}
	worker := w.workers[queue]
	if worker.link == nil || worker.Cut || !worker.link.jobs || w.ferry.queues[queue].failed[ref] > 0 {
		return
	}
	if !w.ferryKnows(worker, ref) || slices.ContainsFunc(w.ferry.queues[queue].delayed, func(d delayed) bool { return d.ref == ref }) {
		return
	}
	if w.book.clear[queue] == nil {
		w.book.clear[queue] = map[string]bool{}
	}
	w.book.clear[queue][ref.Name] = true
	if job := w.JobOn(queue, ref.Name); job != nil && ours(job) {
		w.checkRunning(origin(job))
	}
}

// ferryKnows tells whether Ferry's caches show everything about a job on the manager and on one worker.
func (w *World) ferryKnows(worker *Worker, ref kinds.Ref) bool {
	return w.managerKnown(ref) && worker.link != nil && worker.link.cache.Knows(matters(ref))
}

func (w *World) managerKnown(ref kinds.Ref) bool { return w.ferry.cache.Knows(matters(ref)) }

// matters picks the job and all Workloads: which of them are, or were, the job's may be what is not known yet.
func matters(ref kinds.Ref) func(cluster.Key) bool {
	job := refKey(ref)
	return func(key cluster.Key) bool { return key == job || key.Kind == "Workload" }
}
