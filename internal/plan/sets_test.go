package plan_test

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

var (
	lwsKind   = kinds.NewTable([]string{"leaderworkerset.x-k8s.io/leaderworkerset"}).Rows()[0]
	groupKind = kinds.NewTable([]string{"pod"}).ByName("PodGroup")
)

// lws makes the job a LeaderWorkerSet with two replicas and so two Workloads.
func lws(s *plan.Snapshot) {
	s.Kind, s.Ref.Kind = lwsKind, lwsKind.Name()
	s.Jobs[0].SetGroupVersionKind(lwsKind.GVK)
	s.Jobs[0].Object["spec"] = map[string]any{"replicas": int64(2)}
	twoWorkloads(s)
}

// running puts the copy of a job of any kind on a worker that has the claim.
func running(worker string) with {
	return all(claim(worker), check(kueue.CheckStateReady), offered(worker), admitted(worker, time.Minute), copied(worker))
}

func copied(worker string) with {
	return on(worker, func(s *plan.Snapshot, w *plan.Worker) {
		for _, job := range s.Jobs {
			c := s.Kind.Project(job, s.Workloads[0], kinds.Marks{Origin: "m", Worker: worker, Reservation: plan.Reservation(s.Workloads[0])})
			c.SetUID(types.UID(worker + "-" + job.GetName()))
			w.Jobs = append(w.Jobs, c)
		}
	})
}

// second changes the second Workload on the manager only.
func second(change func(*kueue.Workload)) with {
	return func(s *plan.Snapshot) { change(s.Workloads[1]) }
}

// came makes the second Workload one that is new.
func came(nominated ...string) with {
	return second(func(wl *kueue.Workload) {
		wl.Status.ClusterName, wl.Status.NominatedClusterNames = nil, nominated
		wl.Status.AdmissionChecks[0].State = kueue.CheckStatePending
	})
}

func secondCopy(worker string, change func(*kueue.Workload)) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { change(w.Workloads[1]) })
}

// ownedBy makes objects of these UIDs the owners of all copies on the worker.
func ownedBy(worker string, uids ...types.UID) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		for _, c := range w.Workloads {
			for _, uid := range uids {
				c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{UID: uid})
			}
		}
	})
}

// ofEarlier makes a copy one of an earlier reservation.
func ofEarlier(c *kueue.Workload) { c.Annotations[kinds.ReservationAnnotation] = "0-1" }

// ofReplicas makes the Workloads those of the first replicas of a set that has n now.
func ofReplicas(n int64) with {
	return func(s *plan.Snapshot) {
		s.Jobs[0].Object["spec"] = map[string]any{"replicas": n}
		for i, wl := range s.Workloads {
			wl.Annotations = map[string]string{"kueue.x-k8s.io/component-workload-index": strconv.Itoa(i)}
		}
	}
}

// classed gives the job on the manager, and its Workloads, a priority class of their value.
func classed(name string) with {
	return func(s *plan.Snapshot) {
		s.Jobs[0].SetLabels(map[string]string{"kueue.x-k8s.io/priority-class": name})
		for _, wl := range s.Workloads {
			wl.Spec.PriorityClassRef = kueue.NewWorkloadPriorityClassRef(name)
		}
	}
}

// refuses: the worker did not take something of the job a while ago.
func refuses(_ *plan.Snapshot, w *plan.Worker) {
	w.Serves, w.Why, w.AskAgain = false, "refused the copy: quota exceeded", now.Add(20*time.Second)
}

func noSecondCopy(_ *plan.Snapshot, w *plan.Worker) { w.Workloads = w.Workloads[:1] }

func preempted(wl *kueue.Workload) {
	setCondition(wl, kueue.WorkloadEvicted, true, "Preempted", time.Second)
}

// pods makes the job a group of two pods, with statuses on the manager.
func pods(first, second map[string]any) with {
	return func(s *plan.Snapshot) {
		s.Kind, s.Ref.Kind, s.Jobs = groupKind, groupKind.Name(), nil
		for name, status := range map[string]map[string]any{"a": first, "b": second} {
			pod := newJob()
			pod.SetGroupVersionKind(groupKind.GVK)
			pod.SetName(name)
			pod.SetUID(types.UID(name))
			pod.Object["spec"], pod.Object["status"] = map[string]any{}, status
			s.Jobs = append(s.Jobs, pod)
		}
		if s.Jobs[0].GetName() == "b" {
			s.Jobs[0], s.Jobs[1] = s.Jobs[1], s.Jobs[0]
		}
	}
}

func withoutSecondPod(_ *plan.Snapshot, w *plan.Worker) { w.Jobs = w.Jobs[:1] }

func secondPodGoing(_ *plan.Snapshot, w *plan.Worker) { deleted(w.Jobs[1]) }

func secondPodFailed(_ *plan.Snapshot, w *plan.Worker) { w.Jobs[1].Object["status"] = failedP }

func secondPodSucceeded(_ *plan.Snapshot, w *plan.Worker) { w.Jobs[1].Object["status"] = succeeded }

func managersSecondPod(change func(*unstructured.Unstructured)) with {
	return func(s *plan.Snapshot) { change(s.Jobs[1]) }
}

var (
	pending   = map[string]any{"phase": "Pending"}
	runningP  = map[string]any{"phase": "Running"}
	failedP   = map[string]any{"phase": "Failed"}
	succeeded = map[string]any{"phase": "Succeeded"}
)

// goingHeld: the pods on the worker are being deleted, and Kueue there holds them.
func goingHeld(_ *plan.Snapshot, w *plan.Worker) {
	for _, pod := range w.Jobs {
		deleted(pod)
		pod.SetFinalizers([]string{"kueue.x-k8s.io/managed"})
	}
}

// allDeleted: all pods of the group were deleted at a time, and Kueue holds them.
func allDeleted(at time.Time) with {
	return func(s *plan.Snapshot) {
		for _, pod := range s.Jobs {
			pod.SetDeletionTimestamp(&metav1.Time{Time: at})
		}
	}
}

// reservedAnew: Kueue evicted the Workload, and reserved its quota again some time ago.
func reservedAnew(ago time.Duration) with {
	return manager(func(wl *kueue.Workload) { setCondition(wl, kueue.WorkloadEvicted, false, "QuotaReserved", ago) })
}

func deletedWorkload(wl *kueue.Workload) { wl.DeletionTimestamp = &metav1.Time{Time: now} }

// ofCount says how many pods the group has.
func ofCount(n string) with {
	return func(s *plan.Snapshot) {
		for _, pod := range s.Jobs {
			pod.SetAnnotations(map[string]string{"kueue.x-k8s.io/pod-group-total-count": n})
		}
	}
}

// joined makes another pod of the group on the manager.
func joined(name string) with {
	return func(s *plan.Snapshot) {
		pod := s.Jobs[1].DeepCopy()
		pod.SetName(name)
		pod.SetUID(types.UID(name))
		pod.SetDeletionTimestamp(nil)
		pod.Object["status"] = pending
		s.Jobs = append(s.Jobs, pod)
	}
}

// substituted puts another pod in the place of the second one, which goes from the worker, and has this status there if any.
func substituted(name string, status map[string]any) with {
	return func(s *plan.Snapshot) {
		joined(name)(s)
		s.Jobs = append(s.Jobs[:1:1], s.Jobs[2:]...)
		on("w1", secondPodGoing)(s)
		if status != nil {
			on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Jobs[1].Object["status"] = status })(s)
		}
	}
}

// podsThere sets the status of all pods on a worker.
func podsThere(worker string, status map[string]any) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		for _, pod := range w.Jobs {
			pod.Object["status"] = status
		}
	})
}

// shadows gives the set one pod on the manager and its namesake on the worker, and one that is there only.
func shadows(managers, workers map[string]any) with {
	return func(s *plan.Snapshot) {
		pod := newJob()
		pod.SetGroupVersionKind(groupKind.GVK)
		pod.SetName("train-0")
		pod.Object["status"] = managers
		s.Pods = one(pod)
		if workers == nil {
			return
		}
		on("w1", func(_ *plan.Snapshot, w *plan.Worker) {
			for _, name := range []string{"train-0", "train-1"} {
				pod := pod.DeepCopy()
				pod.SetName(name)
				pod.Object["status"] = workers
				w.Pods = append(w.Pods, pod)
			}
		})(s)
	}
}

func one(obj *unstructured.Unstructured) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{obj}
}

// ofASet marks the pods as Kueue does those of a set.
func ofASet(s *plan.Snapshot) {
	for _, pod := range s.Pods {
		pod.SetAnnotations(map[string]string{kinds.SuspendingParent: "leaderworkerset.x-k8s.io/leaderworkerset"})
	}
}

// setHas is how many replicas the set on the manager has, by its own status.
func setHas(replicas int64) with {
	return func(s *plan.Snapshot) { s.Jobs[0].Object["status"] = map[string]any{"replicas": replicas} }
}

// family makes the job one of several that belong together.
func family(home, earlier string) with {
	return func(s *plan.Snapshot) { s.Family = plan.Family{Home: home, Earlier: earlier} }
}

func reservedJustNow(wl *kueue.Workload) {
	setCondition(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Second)
}

func dispatchedElsewhere(s *plan.Snapshot) { s.Policy.Placement = placement.External{} }

// sets: jobs of several Workloads, and of several objects.
var sets = []ruleCase{
	{rule: "WaitForSiblings", name: "a Workload is yet to come", when: snap(lws, func(s *plan.Snapshot) { s.Workloads = s.Workloads[:1] }), does: "manager: set check of wl to Pending", because: "1 of 2", unless: snap(lws), then: "Nominate"},
	{rule: "AdmittedSomewhere", name: "not before all are admitted", when: snap(lws, nominated("w1"), offered("w1"), admitted("w1", time.Minute)), does: "manager: claim wl for w1, claim wl2 for w1",
		unless: snap(lws, nominated("w1"), offered("w1"), admitted("w1", time.Minute), secondCopy("w1", func(c *kueue.Workload) { setCondition(c, kueue.WorkloadAdmitted, false, "x", 0) })), then: "Nominate"},
	{rule: "Claimed", name: "one that comes later is sent to the job's worker", when: snap(lws, running("w1"), came("w1", "w2"), on("w1", noSecondCopy)), does: "manager: nominate [w1] for wl2"},
	{rule: "Claimed", name: "then copied there", when: snap(lws, running("w1"), came("w1"), on("w1", noSecondCopy)), does: "w1: create Workload wl2"},
	{rule: "Claimed", name: "but not at once again where that was refused", when: snap(lws, running("w1"), came("w1"), on("w1", noSecondCopy), on("w1", refuses)), does: "manager: set check of wl2 to Pending | again in 20s"},
	{rule: "Claimed", name: "where its copy of an earlier reservation goes first", when: snap(lws, running("w1"), came("w1"), secondCopy("w1", ofEarlier)), does: "w1: delete Workload wl2"},
	{rule: "Claimed", name: "then awaited", when: snap(lws, running("w1"), came("w1"), secondCopy("w1", func(c *kueue.Workload) { setCondition(c, kueue.WorkloadAdmitted, false, "x", 0) }))},
	{rule: "Claimed", name: "then claimed", when: snap(lws, running("w1"), came("w1")), does: "manager: claim wl2 for w1"},
	{rule: "Claimed", name: "not placed before all that were won together are claimed", when: snap(lws, claim("w1"), nominated("w1"), offered("w1"), admitted("w1", time.Minute), second(func(wl *kueue.Workload) { wl.Status.ClusterName = nil })),
		does: "manager: claim wl2 for w1"},
	{rule: "Claimed", name: "one that came meanwhile is no reason to wait", when: snap(lws, claim("w1"), offered("w1"), admitted("w1", time.Minute), came(), on("w1", noSecondCopy)),
		does: "w1: create LeaderWorkerSet train"},
	{rule: "Claimed", name: "one that leaves takes its copy along", when: snap(lws, running("w1"), second(preempted)), does: "w1: delete Workload wl2"},
	{rule: "Claimed", name: "one sent back too", when: snap(lws, running("w1"), second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStateRetry })), does: "w1: delete Workload wl2"},
	{rule: "Claimed", name: "one whose copy vanished goes back alone", when: snap(lws, running("w1"), on("w1", noSecondCopy)), does: "manager: set check of wl2 to Retry", because: "gone"},
	{rule: "Claimed", name: "one that the worker gave up first, as the set was scaled down, is not lost", when: snap(lws, running("w1"), on("w1", noSecondCopy), ofReplicas(1)),
		does: "w1: edit LeaderWorkerSet train"},
	{rule: "NotOurs", name: "nor are all of them, as it was scaled to nothing: the set goes, and nobody is sent back", when: snap(lws, running("w1"), on("w1", noCopies), ofReplicas(0)),
		does: "w1: delete LeaderWorkerSet train"},
	{rule: "Claimed", name: "one that is still wanted is", when: snap(lws, running("w1"), on("w1", noSecondCopy), ofReplicas(2)), does: "manager: set check of wl2 to Retry"},
	{rule: "Claimed", name: "the set owns what its pods own, lest a rollout take it along", when: snap(lws, running("w1"), ownedBy("w1", "pod")), does: "w1: give wl its owner train, give wl2 its owner train"},
	{rule: "Claimed", name: "once", when: snap(lws, running("w1"), ownedBy("w1", "pod", "w1-train"))},
	{rule: "Claimed", name: "but nothing that Kueue has not taken up", when: snap(lws, running("w1"), ownedBy("w1"))},
	{rule: "Claimed", name: "a set that goes owns nothing more", when: snap(lws, running("w1"), ownedBy("w1", "pod"), on("w1", func(_ *plan.Snapshot, w *plan.Worker) { deleted(w.Jobs[0]) }))},
	{rule: "Claimed", name: "the value of a priority follows", when: snap(lws, running("w1"), priority(9)), does: "w1: set priority of wl, set priority of wl2"},
	{rule: "Claimed", name: "its class is the manager's alone", when: snap(lws, running("w1"), classed("high"))},
	{rule: "Claimed", name: "the copy is marked with what holds now", when: snap(lws, running("w1"), second(func(wl *kueue.Workload) {
		setCondition(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Second)
	}), on("w1", func(s *plan.Snapshot, w *plan.Worker) {
		w.Workloads[1].Annotations[kinds.ReservationAnnotation] = plan.Reservation(s.Workloads[1])
	})), does: "w1: edit LeaderWorkerSet train"},
	{rule: "EvictedOnWorker", name: "one of many goes back alone", when: snap(lws, running("w1"), secondCopy("w1", preempted)), does: "manager: set check of wl2 to Retry"},
	{rule: "EvictedOnManager", name: "all of many", when: snap(lws, running("w1"), managerCondition(kueue.WorkloadEvicted)), does: "w1: delete LeaderWorkerSet train, delete Workload wl, delete Workload wl2 | again in 14m59s"},

	{rule: "EvictedOnManager", name: "pods of a set do not look as if they ran", when: snap(lws, managerCondition(kueue.WorkloadEvicted), shadows(runningP, nil), ofASet), does: "manager: mirror status of Pod train-0"},
	{rule: "EvictedOnManager", name: "once nothing of it is there", when: snap(lws, running("w1"), managerCondition(kueue.WorkloadEvicted), shadows(runningP, nil), ofASet), does: "w1: delete LeaderWorkerSet train, delete Workload wl, delete Workload wl2 | again in 14m59s"},
	{rule: "Claimed", name: "pods of a set are shown as their namesakes are", when: snap(lws, running("w1"), shadows(pending, runningP)), does: "manager: mirror status of Pod train-0"},
	{rule: "Claimed", name: "and nothing more", when: snap(lws, running("w1"), shadows(runningP, runningP))},
	{rule: "Claimed", name: "one that the worker does not have yet", when: snap(lws, running("w1"), shadows(pending, nil))},

	{rule: "Claimed", name: "a group is placed whole", when: snap(pods(pending, pending), claim("w1"), offered("w1"), admitted("w1", time.Minute)), does: "w1: create Pod a, create Pod b"},
	{rule: "Claimed", name: "but for one that is being deleted", when: snap(pods(pending, pending), managersSecondPod(deleted), claim("w1"), offered("w1"), admitted("w1", time.Minute)), does: "w1: create Pod a"},
	{rule: "Claimed", name: "each pod is mirrored", when: snap(pods(pending, pending), running("w1"), podsThere("w1", runningP)), does: "manager: mirror status of Pod a, mirror status of Pod b"},
	{rule: "Claimed", name: "one that joins follows", when: snap(pods(runningP, pending), running("w1"), podsThere("w1", runningP), on("w1", withoutSecondPod)), does: "w1: create Pod b"},
	{rule: "Claimed", name: "but not at once again where that was refused", when: snap(pods(runningP, pending), running("w1"), podsThere("w1", runningP), on("w1", withoutSecondPod), on("w1", refuses)), does: "again in 20s"},
	{rule: "Claimed", name: "one that ran and vanished is lost", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", runningP), on("w1", withoutSecondPod)), does: "manager: mirror status of Pod b"},
	{rule: "Claimed", name: "one that ended and vanished stays ended", when: snap(pods(runningP, succeeded), running("w1"), podsThere("w1", runningP), on("w1", withoutSecondPod))},
	{rule: "Claimed", name: "one deleted on the manager goes", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", runningP), func(s *plan.Snapshot) { s.Jobs = s.Jobs[:1] }), does: "w1: delete Pod b"},
	{rule: "Claimed", name: "one that Kueue holds on the manager while it is deleted goes too", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", runningP), managersSecondPod(deleted)), does: "w1: delete Pod b"},
	{rule: "Claimed", name: "once", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", runningP), managersSecondPod(deleted), on("w1", secondPodGoing))},
	{rule: "Claimed", name: "and is shown to its end", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", runningP), managersSecondPod(deleted), on("w1", secondPodGoing), on("w1", secondPodFailed)), does: "manager: mirror status of Pod b"},
	{rule: "Claimed", name: "one that ended there counts until the group is over", when: snap(pods(runningP, succeeded), running("w1"), podsThere("w1", runningP), managersSecondPod(deleted), on("w1", secondPodSucceeded))},
	{rule: "Claimed", name: "one that is going is not made anew", when: snap(pods(runningP, pending), running("w1"), podsThere("w1", runningP), on("w1", withoutSecondPod), managersSecondPod(deleted))},
	{rule: "Claimed", name: "one in the place of another waits for its end", when: snap(pods(runningP, pending), running("w1"), podsThere("w1", runningP), substituted("a2", nil)), because: "Pod a2 waits"},
	{rule: "Claimed", name: "also while Kueue holds the other on the manager", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", runningP), managersSecondPod(deleted), on("w1", secondPodGoing), joined("c")), because: "Pod c waits"},
	{rule: "Claimed", name: "and comes then", when: snap(pods(runningP, pending), running("w1"), podsThere("w1", runningP), substituted("a2", failedP)), does: "w1: create Pod a2"},
	{rule: "Gone", name: "all pods", when: snap(pods(runningP, runningP), running("w1"), noJob), does: "w1: delete Workload wl, delete Pod b, delete Pod a"},
	{rule: "Gone", name: "all pods that Kueue holds on the manager", when: snap(pods(runningP, runningP), running("w1"), allDeleted(now)), does: "w1: delete Pod a, delete Pod b, delete Workload wl | again in 15m0s"},
	{rule: "Gone", name: "a group ends once nothing of it runs", when: snap(pods(runningP, runningP), claim("w1"), allDeleted(now)), does: "manager: finish wl"},
	{rule: "Gone", name: "one that was not admitted too", when: snap(pods(pending, pending), noReservation(), allDeleted(now)), does: "manager: finish wl"},
	{rule: "Gone", name: "a group whose pods do not end there", when: snap(pods(runningP, runningP), running("w1"), allDeleted(now.Add(-time.Minute)), on("w1", goingHeld), on("w1", noCopies)), does: "w1: let Pod a go, let Pod b go | again in 14m0s"},
	{rule: "Gone", name: "is waited for no longer than a lost worker", when: snap(pods(runningP, runningP), running("w1"), allDeleted(now.Add(-15*time.Minute)), on("w1", goingHeld), on("w1", noCopies)), does: "manager: finish wl | w1: let Pod a go, let Pod b go"},
	{rule: "Gone", name: "a group on a worker out of reach", when: snap(pods(runningP, runningP), claim("w1"), lost("w1", time.Minute), allDeleted(now.Add(-time.Minute))), does: "again in 14m0s"},
	{rule: "Gone", name: "others out of reach never had it", when: snap(pods(runningP, runningP), claim("w1"), lost("w2", time.Minute), allDeleted(now)), does: "manager: finish wl"},
	{rule: "Gone", name: "a worker that stays out of reach", when: snap(pods(runningP, runningP), claim("w1"), lost("w1", time.Hour), allDeleted(now.Add(-15*time.Minute))), does: "manager: finish wl"},
	{rule: "Gone", name: "the pods of a group that Kueue evicts are replaced", when: snap(pods(runningP, runningP), managerCondition(kueue.WorkloadEvicted), allDeleted(now))},
	{rule: "Gone", name: "also once it has quota again", when: snap(pods(runningP, runningP), reservedAnew(0), allDeleted(now.Add(-time.Second)))},
	{rule: "Gone", name: "unless those were deleted as well", when: snap(pods(runningP, runningP), reservedAnew(time.Minute), allDeleted(now)), does: "manager: finish wl"},
	{rule: "Gone", name: "a Workload that is deleted frees them", when: snap(pods(runningP, runningP), manager(deletedWorkload), allDeleted(now))},
	{rule: "Gone", name: "a group that is not dispatched", when: snap(pods(runningP, runningP), noCheck, allDeleted(now))},
	{rule: "FinishedOnWorker", name: "every pod's end comes back", when: snap(pods(runningP, runningP), running("w1"), podsThere("w1", succeeded), finishedOn("w1", time.Minute)), does: "manager: mirror status of Pod a, mirror status of Pod b"},
	{rule: "FinishedOnWorker", name: "then it is over", when: snap(pods(succeeded, succeeded), running("w1"), podsThere("w1", succeeded), finishedOn("w1", time.Minute)), does: "manager: finish wl"},
	{rule: "WaitForFamily", name: "the first one chooses", when: snap(family("", "train-0"), manager(reservedJustNow)), does: "manager: set check of wl to Pending | again in 9s", because: "train-0",
		unless: snap(family("", "train-0")), then: "Nominate"},
	{rule: "Nominate", name: "the first of a family asks everybody", when: snap(family("", "")), does: "manager: nominate [w1 w2 w3] for wl"},
	{rule: "Nominate", name: "the others ask at home", when: snap(family("w2", "train-0")), does: "manager: nominate [w2] for wl"},
	{rule: "Nominate", name: "a home that nobody knows any more", when: snap(family("w9", "")), does: "manager: nominate [w1 w2 w3] for wl"},
	{rule: "Nominate", name: "an External dispatcher knows no family", when: snap(family("", "train-0"), manager(reservedJustNow), dispatchedElsewhere), does: "manager: set check of wl to Pending", because: "Waiting for the dispatcher"},
	{rule: "NotGated", name: "a set has pods that Ferry does not see", when: snap(lws, setHas(2), shadows(pending, nil)), does: "manager: set check of wl to Pending, set check of wl2 to Pending", because: "delete them",
		unless: snap(lws, setHas(1), shadows(pending, nil)), then: "Nominate"},
	{rule: "NotGated", name: "a pod that Ferry does not see", when: snap(pods(pending, pending), offered("w1"), noJob), does: "manager: set check of wl to Pending | w1: delete Workload wl"},
	{rule: "Claimed", name: "a rollout that is on is no reason to stop", when: snap(lws, running("w1"), setHas(2), shadows(runningP, runningP))},
	{rule: "NoQuota", name: "a set without quota has time", when: snap(lws, setHas(2), noReservation())},
	{rule: "Claimed", name: "a group keeps its worker while one that failed may be replaced", when: snap(pods(succeeded, failedP), ofCount("2"), running("w1"), podsThere("w1", succeeded)),
		unless: snap(pods(succeeded, succeeded), ofCount("2"), running("w1")), then: "Over"},
	{rule: "Claimed", name: "one that ended does not run again elsewhere", when: snap(pods(pending, succeeded), ofCount("2"), claim("w1"), offered("w1"), admitted("w1", time.Minute)), does: "w1: create Pod a"},
	{rule: "Gone", name: "pods that Kueue holds for a Workload that is gone", when: snap(pods(runningP, runningP), running("w1"), noJob, on("w1", goingHeld), on("w1", noCopies)), does: "w1: let Pod a go, let Pod b go"},
	{rule: "Gone", name: "as long as it is there Kueue sees to them", when: snap(pods(runningP, runningP), running("w1"), noJob, on("w1", goingHeld)), does: "w1: delete Workload wl"},
	{rule: "FinishedOnWorker", name: "a group whose Workload there was deleted since", when: snap(pods(runningP, runningP), ofCount("2"), running("w1"), podsThere("w1", succeeded), on("w1", noCopies)), does: "manager: mirror status of Pod a, mirror status of Pod b"},
	{rule: "Claimed", name: "one that is not whole is not over by that", when: snap(pods(runningP, runningP), ofCount("2"), running("w1"), podsThere("w1", succeeded), on("w1", secondPodFailed), on("w1", noCopies)), does: retry, because: "the Workload is gone"},
	{rule: "Over", name: "a group whose pods all ended", when: snap(pods(succeeded, succeeded), running("w1")), does: "w1: delete Pod a, delete Pod b, delete Workload wl"},
}
