package world

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// checkManagerWrite: Ferry writes status on the manager, and nothing else.
func (w *World) checkManagerWrite(write cluster.Write) {
	if write.Verb != "apply" && write.Verb != "patch" {
		w.Violation("Ferry tries to %s %s on the manager", write.Verb, write.Key)
	}
	was, isWorkload := write.Old.(*kueue.Workload)
	if !isWorkload {
		return
	}
	w.checkClaim(was, write.New.(*kueue.Workload))
	if checkState(was) != kueue.CheckStateRetry && checkState(write.New.(*kueue.Workload)) == kueue.CheckStateRetry {
		w.checkRetryNeeded(was)
		w.checkNotScaledAway(was)
	}
}

// checkClaim: a claim, and what is Ready, is of the present reservation.
func (w *World) checkClaim(was, is *kueue.Workload) {
	if is.Status.ClusterName == nil {
		return
	}
	at := offer{is.Name, plan.Reservation(is), *is.Status.ClusterName}
	if was.Status.ClusterName == nil && !w.book.admitted[at] {
		w.Violation("stale claim: %s is assigned to %s, which never admitted it since the quota was reserved", is.Name, at.worker)
	}
	if checkState(was) != kueue.CheckStateReady && checkState(is) == kueue.CheckStateReady && !w.isPlaced(at, is) {
		w.Violation("stale claim: %s is Ready on %s, where the job was not placed since the quota was reserved", is.Name, at.worker)
	}
}

// isPlaced: the job was placed for this Workload, or for another one of its set that has its quota still.
func (w *World) isPlaced(at offer, wl *kueue.Workload) bool {
	if kinds.ReplicaOf(wl) < 0 {
		return w.book.placed[at]
	}
	return slices.ContainsFunc(w.siblings(wl), func(wl *kueue.Workload) bool {
		return w.book.placed[ofSet(offer{wl.Name, plan.Reservation(wl), at.worker}, wl)]
	})
}

func checkState(wl *kueue.Workload) kueue.CheckState {
	for _, c := range wl.Status.AdmissionChecks {
		if c.Name == Check {
			return c.State
		}
	}
	return ""
}

// checkRetryNeeded: a job is not taken away from a worker on which all is well
// as far as Ferry can see, nor from one that was lost only a while ago.
func (w *World) checkRetryNeeded(wl *kueue.Workload) {
	if wl.Status.ClusterName == nil || w.moved {
		return
	}
	name := *wl.Status.ClusterName
	worker, owner := w.workers[name], wl.OwnerReferences[0].Name
	if worker.leaving || w.drains(name) || !slices.Contains(w.configuredNow(), name) || !w.ferry.cache.Knows(isConfig) || !w.managerKnown(w.refOf(owner)) || !w.healthy(worker, wl, owner) {
		return
	}
	switch {
	case worker.link == nil && w.Clock.Since(worker.lostSince) < w.policy.WorkerLostTimeout:
		w.Violation("job %s is taken from %s, which was lost only %s ago", owner, name, w.Clock.Since(worker.lostSince))
	case worker.link != nil && worker.link.jobs && w.ferryKnows(worker, w.refOf(owner)):
		w.Violation("job %s is taken from %s, where all is well", owner, name)
	case worker.link != nil && !worker.link.jobs && worker.link.cache.Knows(isWorkload) && w.Clock.Since(worker.lostSince) < w.policy.WorkerLostTimeout:
		w.Violation("job %s is taken from %s, which only cannot show it yet", owner, name)
	}
}

func isWorkload(key cluster.Key) bool { return key.Kind == "Workload" }

func isConfig(key cluster.Key) bool {
	return key.Kind == "MultiKueueConfig" || key.Kind == "AdmissionCheck"
}

// healthy: the copy that the claim is about is admitted, and its job is there and can start.
func (w *World) healthy(worker *Worker, wl *kueue.Workload, owner string) bool {
	c, job := worker.Cluster.Workload(wl.Namespace, wl.Name), w.JobOn(worker.Name, owner)
	return worker.Cluster.NoPods == "" && c != nil && ours(c) && job != nil && ours(job) && w.holdsClaim(worker.Name, job) &&
		c.Annotations[kinds.ReservationAnnotation] == plan.Reservation(wl) && kinds.SameSpec(c, wl) &&
		!hasTrue(c, kueue.WorkloadEvicted) && !slices.ContainsFunc(w.Copies(worker.Name, owner), finished)
}

// configuredNow are the workers that the MultiKueueConfig of Ferry's check names.
func (w *World) configuredNow() []string {
	check, _ := w.Manager.Get(cluster.Key{Kind: "AdmissionCheck", Name: Check}).(*kueue.AdmissionCheck)
	if check == nil {
		return nil
	}
	config, _ := w.Manager.Get(cluster.Key{Kind: "MultiKueueConfig", Name: check.Spec.Parameters.Name}).(*kueue.MultiKueueConfig)
	if config == nil {
		return nil
	}
	return config.Spec.Clusters
}

// checkWorkerWrite checks invariants 2 to 4 at the moment of a write.
func (w *World) checkWorkerWrite(worker *Worker, write cluster.Write) {
	if write.Verb == "create" {
		w.checkCreate(worker, write.New)
		return
	}
	if !ours(write.Old) && !adopts(write) {
		w.Violation("invariant 2: Ferry tries to %s %s on %s, which is not its own", write.Verb, write.Key, worker.Name)
	}
	if write.Verb == "delete" {
		w.checkCopyKept(worker, write.Old)
		if job, ok := write.Old.(*unstructured.Unstructured); ok {
			w.checkResultKept(worker, job)
		}
	}
}

// adopts: what has our origin, and lacks nothing but the marks, may get them.
func adopts(write cluster.Write) bool {
	return write.Verb == "patch" && kinds.Unmarked(write.Old) && ours(write.New)
}

func (w *World) checkCreate(worker *Worker, obj client.Object) {
	if !ours(obj) {
		w.Violation("invariant 2: %s is made on %s without marks", cluster.KeyOf(obj), worker.Name)
		return
	}
	for _, at := range offersOf(worker.Name, obj) {
		switch o := obj.(type) {
		case *kueue.Workload:
			if !w.book.nominations[at] {
				w.Violation("invariant 3: a copy of %s is made on %s, which was not nominated for it", o.Name, worker.Name)
			}
		case *unstructured.Unstructured:
			if !w.book.claims[at] {
				w.Violation("invariant 3: job %s is placed on %s, which has no claim", o.GetName(), worker.Name)
			}
			w.checkFresh(worker, o)
		}
	}
}

// checkFresh: what Ferry's caches show must hold, not only have held.
func (w *World) checkFresh(worker *Worker, job *unstructured.Unstructured) {
	if w.depth > 0 || w.ferry == nil || !w.managerKnown(w.refOf(job.GetName())) || w.moved {
		return
	}
	if !w.holdsClaim(worker.Name, job) {
		w.Violation("invariant 3: job %s is placed on %s, which Ferry can see has no claim now", job.GetName(), worker.Name)
	}
}

// checkResultKept is the first half of invariant 4.
func (w *World) checkResultKept(worker *Worker, job *unstructured.Unstructured) {
	if wl := w.Workload(job.GetName()); (w.refuses || w.Faults.Always[ManagerName+" patch Job"] != 0) && wl != nil && finished(wl) {
		return // the manager took no status of jobs: the Workload has the result
	}
	r, known := w.book.results[origin(job)]
	if !known || r.worker != worker.Name || !endedAlready(job) {
		return
	}
	on := w.Manager.Job(job.GetNamespace(), job.GetName())
	if on == nil || on.GetUID() != origin(job) || on.GetDeletionTimestamp() != nil || endedAlready(on) {
		return
	}
	w.Violation("invariant 4: the result of %s is deleted on %s before it is on the manager", job.GetName(), worker.Name)
}

// Leftovers are Ferry's objects on reachable workers that no live job needs (invariant 5).
func (w *World) Leftovers() []string {
	var left []string
	for _, name := range w.names {
		if w.workers[name].Cut {
			continue
		}
		c := w.workers[name].Cluster
		held := c.List("Workload")
		for _, job := range c.Jobs() {
			held = append(held, job)
		}
		for _, obj := range held {
			if ours(obj) && !w.needed(name, obj) {
				left = append(left, name+": "+cluster.KeyOf(obj).String())
			}
		}
	}
	return left
}

func (w *World) needed(worker string, obj client.Object) bool {
	ref, _ := kinds.CopyOf(obj)
	if on := w.Manager.Job(Namespace, ref.Name); endedAlready(on) {
		return false
	}
	_, isWorkload := obj.(*kueue.Workload)
	return slices.ContainsFunc(w.Workloads(ref.Name), func(wl *kueue.Workload) bool {
		if isWorkload && wl.Name != obj.GetName() || !slices.Contains(reservations(obj), plan.Reservation(wl)) {
			return false
		}
		if wl.Status.ClusterName != nil {
			return *wl.Status.ClusterName == worker
		}
		return slices.Contains(wl.Status.NominatedClusterNames, worker)
	})
}

// Unfinished are the manager's active jobs that did not come to an end (invariant 6).
func (w *World) Unfinished() []string {
	var names []string
	for _, job := range w.Manager.Jobs() {
		if serves(job) {
			continue
		}
		wl := w.Kueue.WorkloadOf(job)
		ended, _ := kueuemodel.Ended(job)
		if wl == nil || !finished(wl) || !ended && !w.refuses {
			names = append(names, job.GetName())
		}
	}
	return names
}

func finished(wl *kueue.Workload) bool { return hasTrue(wl, kueue.WorkloadFinished) }

func hasTrue(wl *kueue.Workload, t string) bool {
	return slices.ContainsFunc(wl.Status.Conditions, func(c condition) bool { return c.Type == t && c.Status == "True" })
}
