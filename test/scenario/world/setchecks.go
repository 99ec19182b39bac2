package world

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// checkOneHome: those Workloads of a set that are assigned to a worker are assigned to the same one.
func (w *World) checkOneHome(wl *kueue.Workload) {
	if kinds.ReplicaOf(wl) < 0 {
		return
	}
	var homes []string
	for _, wl := range w.siblings(wl) {
		if home := wl.Status.ClusterName; home != nil && !takenBack(wl) && !slices.Contains(homes, *home) {
			homes = append(homes, *home)
		}
	}
	if len(homes) > 1 {
		w.Violation("set %s is assigned to %v at once", wl.OwnerReferences[0].Name, homes)
	}
}

// checkNotScaledAway: a replica that the set does not have any more is not lost when Kueue on the worker deletes its copy.
func (w *World) checkNotScaledAway(wl *kueue.Workload) {
	set := w.Manager.Job(wl.Namespace, wl.OwnerReferences[0].Name)
	if set == nil || w.moved || wl.Status.ClusterName == nil || int64(kinds.ReplicaOf(wl)) < kueuemodel.Replicas(set) {
		return
	}
	worker, ref := w.workers[*wl.Status.ClusterName], kinds.RefOf(set)
	if worker.link == nil || !slices.Contains(w.configuredNow(), worker.Name) || !w.ferryKnows(worker, ref) {
		return
	}
	if copyOfSet := w.JobOn(worker.Name, ref.Name); copyOfSet != nil && w.holdsClaim(worker.Name, copyOfSet) && worker.Cluster.Workload(wl.Namespace, wl.Name) == nil {
		w.Violation("%s is sent back to the queue as lost, but the set was scaled down", wl.Name)
	}
}

// checkCopyKept: as long as all is well with a set's Workload on its worker, its copy and that of the set stay.
func (w *World) checkCopyKept(worker *Worker, obj client.Object) {
	ref, _ := kinds.CopyOf(obj)
	if w.kindOf(ref.Name) != cluster.Set || w.moved || w.ferry == nil || !w.ferryKnows(worker, ref) {
		return
	}
	_, isWorkload := obj.(*kueue.Workload)
	for _, wl := range w.Workloads(ref.Name) {
		isIt := !isWorkload || wl.Name == obj.GetName()
		if isIt && isAssigned(wl, worker.Name) && w.healthy(worker, wl, ref.Name) {
			w.Violation("%s is deleted on %s, where all is well", cluster.KeyOf(obj), worker.Name)
		}
	}
}

func isAssigned(wl *kueue.Workload, worker string) bool {
	return hasTrue(wl, kueue.WorkloadQuotaReserved) && !takenBack(wl) && wl.Status.ClusterName != nil && *wl.Status.ClusterName == worker
}

// serves tells whether a job has no end: a set, or a pod of a Deployment.
func serves(job *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(job.Object, "spec", "restartPolicy")
	return job.GetKind() == cluster.Set.Kind || policy == "Always"
}

func isPod(job *unstructured.Unstructured) bool { return job.GetKind() == cluster.Pod.Kind }

// Unsettled are the manager's jobs without an end of which not all runs on one worker, and shows on the manager.
func (w *World) Unsettled() []string {
	var names []string
	for _, job := range w.Manager.Jobs() {
		if ended, _ := kueuemodel.Ended(job); serves(job) && !ended && !w.runsWell(job) {
			names = append(names, job.GetName())
		}
	}
	return names
}

func (w *World) runsWell(job *unstructured.Unstructured) bool {
	wls := w.Workloads(job.GetName())
	for _, wl := range wls {
		if checkState(wl) != kueue.CheckStateReady || !hasTrue(wl, kueue.WorkloadAdmitted) || wl.Status.ClusterName == nil {
			return false
		}
	}
	if isPod(job) {
		return len(wls) == 1 && kueuemodel.Ready(job)
	}
	return w.isWhole(job, wls)
}

func (w *World) isWhole(set *unstructured.Unstructured, wls []*kueue.Workload) bool {
	if int64(len(wls)) != kueuemodel.Replicas(set) {
		return false
	}
	if len(wls) == 0 {
		return true
	}
	home := *wls[0].Status.ClusterName
	return len(w.Copies(home, set.GetName())) == len(wls) && allReady(w.Manager, set, len(wls)) &&
		allReady(w.workers[home].Cluster, w.JobOn(home, set.GetName()), len(wls))
}

// allReady: as many pods as there should be are ready, and of the present template.
func allReady(c *cluster.Cluster, set *unstructured.Unstructured, n int) bool {
	pods := PodsOf(c, set)
	return len(pods) == n && !slices.ContainsFunc(pods, func(pod *unstructured.Unstructured) bool {
		return !kueuemodel.Ready(pod) || kueuemodel.Image(pod, "spec") != kueuemodel.Image(set, "spec", "leaderWorkerTemplate", "workerTemplate", "spec")
	})
}
