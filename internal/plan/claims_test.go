package plan_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/plan"
)

var now0 = metav1.NewTime(now)

const (
	retry   = "manager: set check of wl to Retry"
	mirrors = "manager: mirror status of Job train"
)

var (
	runs  = map[string]any{"active": int64(1), "startTime": "2026-03-01T09:50:00Z"}
	novel = map[string]any{"active": int64(1), "startTime": "2026-03-01T09:50:00Z", "sinceKubernetes2": true}
	ended = map[string]any{"succeeded": int64(1), "startTime": "2026-03-01T09:50:00Z", "completionTime": "2026-03-01T09:55:00Z", "conditions": []any{
		map[string]any{"type": "SuccessCriteriaMet", "status": "True"}, map[string]any{"type": "Complete", "status": "True"},
	}}
)

func started(s *plan.Snapshot) { s.Jobs[0].Object["spec"].(map[string]any)["suspend"] = false }

// topologyDelayed: Kueue on the manager leaves the choice of nodes to whoever runs the job.
func topologyDelayed(state kueue.DelayedTopologyRequestState) with {
	return manager(func(wl *kueue.Workload) {
		wl.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: "racks"}, DelayedTopologyRequest: &state,
		}}}
	})
}

func managerStatus(status map[string]any) with {
	return func(s *plan.Snapshot) { s.Jobs[0].Object["status"] = status }
}

func finishedOn(worker string, ago time.Duration) with {
	return copies(worker, func(c *kueue.Workload) { setCondition(c, kueue.WorkloadFinished, true, "Succeeded", ago) })
}

func moreParallel(wl *kueue.Workload) { wl.Spec.QueueName = "other" }

func priority(p int32) with { return manager(func(wl *kueue.Workload) { wl.Spec.Priority = &p }) }

func leaving(wl *kueue.Workload) { wl.DeletionTimestamp = &now0 }

func jobGoing(_ *plan.Snapshot, w *plan.Worker) { deleted(w.Jobs[0]) }

// unclaimed: Kueue evicted the job and reserved again.
func unclaimed(s *plan.Snapshot) {
	manager(func(wl *kueue.Workload) { wl.Status.ClusterName = nil })(s)
	check(kueue.CheckStatePending)(s)
}

func noCopies(_ *plan.Snapshot, w *plan.Worker) { w.Workloads = nil }

// askedForJob: the worker itself says that it has no copy of the job.
var askedForJob = on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.JobGone = now })

func noJobThere(_ *plan.Snapshot, w *plan.Worker) { w.Jobs = nil }

func twoWorkloads(s *plan.Snapshot) { s.Workloads = append(s.Workloads, newWorkload("wl2")) }

func claimFirst(s *plan.Snapshot) { w1 := "w1"; s.Workloads[0].Status.ClusterName = &w1 }

// placing is a job that a worker admitted a moment ago.
var placing = all(nominated("w1"), offered("w1"), admitted("w1", time.Second), claim("w1"))

func claimedFor(d time.Duration) with {
	return func(s *plan.Snapshot) { s.ClaimedSince = now.Add(-d) }
}

func trouble(what string) with {
	return on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Trouble = what })
}

// claims: a worker holds the job.
var claims = []ruleCase{
	{rule: "ReadyWithoutClaim", name: "retries", when: snap(check(kueue.CheckStateReady)), does: retry, because: "no admitting cluster", unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "OutOfSync", name: "on the claim's worker", when: snap(claimedBy("w1"), copyCondition("w1", kueue.WorkloadFinished, "OutOfSync")), does: retry, because: `"w1"`,
		unless: snap(claimedBy("w1"), copyCondition("w1", kueue.WorkloadFinished, "Succeeded")), then: "FinishedOnWorker"},
	{rule: "Claimed", name: "its nodes are the worker's affair", when: snap(claimedBy("w1"), started, check(kueue.CheckStateReady), topologyDelayed(kueue.DelayedTopologyRequestStatePending)), does: "manager: set check of wl to Ready"},
	{rule: "Claimed", name: "its nodes are found", when: snap(claimedBy("w1"), started, check(kueue.CheckStateReady), topologyDelayed(kueue.DelayedTopologyRequestStateReady)), does: ""},
	{rule: "Claimed", name: "an ended loser holds up nothing", when: snap(claimedBy("w1"), offered("w2"), finishedOn("w2", time.Minute)), does: "w2: delete Workload wl"},
	{rule: "FinishedOnWorker", name: "mirrors first", when: snap(claimedBy("w1"), started, finishedOn("w1", time.Minute), jobStatus("w1", ended)), does: mirrors, because: `worker "w1"`,
		unless: snap(claimedBy("w1"), started, jobStatus("w1", ended)), then: "Claimed"},
	{rule: "FinishedOnWorker", name: "lets Kueue finish", when: snap(claimedBy("w1"), finishedOn("w1", time.Second), jobStatus("w1", ended), managerStatus(ended)), does: "again in 2s"},
	{rule: "FinishedOnWorker", name: "finishes itself", when: snap(claimedBy("w1"), finishedOn("w1", time.Minute), jobStatus("w1", ended), managerStatus(ended)), does: "manager: finish wl"},
	{rule: "FinishedOnWorker", name: "though lost from the config", when: snap(claimedBy("w1"), outOfConfig("w1", time.Hour), finishedOn("w1", time.Minute), jobStatus("w1", ended), managerStatus(ended)), does: "manager: finish wl"},
	{rule: "FinishedOnWorker", name: "though evicted meanwhile", when: snap(claimedBy("w1"), started, finishedOn("w1", time.Minute), jobStatus("w1", ended), managerCondition(kueue.WorkloadEvicted)), does: mirrors},
	{rule: "FinishedOnWorker", name: "though its quota went meanwhile", when: snap(claimedBy("w1"), finishedOn("w1", time.Minute), jobStatus("w1", ended), noReservation()), does: mirrors},
	{rule: "FinishedOnWorker", name: "though the check is Retry", when: snap(claimedBy("w1"), finishedOn("w1", time.Minute), jobStatus("w1", ended), check(kueue.CheckStateRetry)), does: mirrors},
	{rule: "FinishedOnWorker", name: "though its Workload there was deleted since", when: snap(claimedBy("w1"), started, jobStatus("w1", ended), on("w1", noCopies), sought("w1", "")), does: mirrors,
		unless: snap(claimedBy("w1"), started, jobStatus("w1", runs), on("w1", noCopies), sought("w1", "")), then: "Claimed"},
	{rule: "Over", name: "also when its Workload there was deleted since", when: snap(claimedBy("w1"), started, jobStatus("w1", ended), managerStatus(ended), on("w1", noCopies)), does: "w1: delete Job train"},
	{rule: "WaitForCleanup", name: "the end without a Workload of an earlier reservation", when: snap(claimedBy("w1"), started, jobStatus("w1", ended), on("w1", noCopies), evictedSince(), unclaimed), does: "manager: set check of wl to Pending | w1: delete Job train | again in 14m0s"},
	{rule: "Claimed", name: "the end of what was told to stop is none", when: snap(claimedBy("w1"), started, jobStatus("w1", ended), on("w1", noCopies), sought("w1", ""), on("w1", jobGoing)), does: retry},
	{rule: "FinishedOnWorker", name: "waits for the job's own end to be seen", when: snap(claimedBy("w1"), started, finishedOn("w1", time.Minute), jobStatus("w1", runs), managerStatus(runs))},
	{rule: "Over", name: "never again", when: snap(claimedBy("w1"), managerStatus(ended)), does: "w1: " + deleteBoth, unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "Over", name: "nor anew", when: snap(managerStatus(ended))},
	{rule: "Claimed", name: "no job, no result", when: snap(claimedBy("w1"), finishedOn("w1", time.Minute), on("w1", noJobThere), askedForJob), does: retry, because: "before its result was seen"},
	{rule: "EvictedOnWorker", name: "time is up, the manager ends it", when: snap(claimedBy("w1"), started, maxTime, timeIsUp), because: "maximum execution time is up"},
	{rule: "EvictedOnWorker", name: "time is up, and the manager's clock does not run yet", when: snap(claimedBy("w1"), check(kueue.CheckStatePending), maxTime, timeIsUp), does: "manager: set check of wl to Ready", because: "maximum execution time is up"},
	{rule: "EvictedOnWorker", name: "time is up on the worker only", when: snap(claimedBy("w1"), started, timeIsUp), does: retry},
	{rule: "EvictedOnWorker", name: "stopped there for good, for another reason", when: snap(claimedBy("w1"), started, maxTime, copyCondition("w1", kueue.WorkloadEvicted, "DeactivatedDueToRequeuingLimitExceeded")), does: retry},
	{rule: "EvictedOnWorker", name: "retries", when: snap(claimedBy("w1"), copyCondition("w1", kueue.WorkloadEvicted, "Preempted")), does: retry, because: "because Preempted",
		unless: snap(claimedBy("w1"), offered("w2"), copyCondition("w2", kueue.WorkloadEvicted, "Preempted")), then: "Claimed"},
	{rule: "SpecDrift", name: "on the claim's worker", when: snap(claimedBy("w1"), manager(moreParallel)), does: retry, because: `"w1"`, unless: snap(claimedBy("w1"), priority(9)), then: "Claimed"},
	{rule: "Claimed", name: "marks of another build", when: snap(claimedBy("w1"), copies("w1", markedByAnotherBuild)), unless: snap(claimedBy("w1"), copies("w1", markedByAnotherBuild), manager(moreParallel)), then: "SpecDrift"},
	{rule: "Claimed", name: "a drifted loser holds up nothing", when: snap(offered("w2"), manager(moreParallel), claimedBy("w1")), does: "w2: delete Workload wl"},
	{rule: "WorkerLeaves", name: "sends the job elsewhere at once", when: snap(claimedBy("w1"), offered("w2"), started, jobStatus("w1", runs), withdrawn("w1")), does: retry + " | w2: delete Workload wl", because: `"w1" is withdrawn from`,
		unless: snap(claimedBy("w1"), blind("w1", time.Minute), withdrawn("w1")), then: "WorkerLost"},
	{rule: "WorkerLeaves", name: "taken out of the config", when: snap(claimedBy("w1"), started, jobStatus("w1", runs), outOfConfig("w1", 0), withdrawn("w1")), does: retry, because: "no longer in the MultiKueueConfig"},
	{rule: "WorkerLeaves", name: "also a job that is not placed yet", when: snap(claim("w1"), offered("w1"), admitted("w1", time.Minute), withdrawn("w1")), does: retry},
	{rule: "Decided", name: "then what is there goes", when: snap(claimedBy("w1"), withdrawn("w1"), check(kueue.CheckStateRetry)), does: "w1: " + deleteBoth},
	{rule: "FinishedOnWorker", name: "the result comes first", when: snap(claimedBy("w1"), started, withdrawn("w1"), finishedOn("w1", time.Minute), jobStatus("w1", ended)), does: mirrors},
	{rule: "WorkerLost", name: "to be given up, and out of reach", when: snap(claimedBy("w1"), lost("w1", 30*time.Second), withdrawn("w1")), does: "again in 30s", because: "14m30s left"},
	{rule: "WorkerLost", name: "within the grace", when: snap(claimedBy("w1"), offered("w2"), lost("w1", 30*time.Second)), does: "w2: delete Workload wl | again in 30s", because: "14m30s left", unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "WorkerLost", name: "after it", when: snap(claimedBy("w1"), lost("w1", 15*time.Minute)), does: retry, because: `"w1" was out of reach`},
	{rule: "WorkerLost", name: "left the config", when: snap(claimedBy("w1"), started, jobStatus("w1", runs), outOfConfig("w1", time.Minute)), does: mirrors + " | again in 14m0s"},
	{rule: "WorkerLost", name: "at once, if so configured", when: snap(claimedBy("w1"), lost("w1", 0), lostTimeout(0)), does: retry, because: `"w1" was out of reach`},
	{rule: "WorkerLost", name: "not before this process could connect", when: snap(claimedBy("w1"), lost("w1", time.Second), unread("w1"), lostTimeout(0)), does: "again in 59s", because: "1m29s left"},
	{rule: "WorkerLost", name: "but then", when: snap(claimedBy("w1"), lost("w1", 90*time.Second), unread("w1"), lostTimeout(0)), does: retry, because: `"w1" was out of reach`},
	{rule: "WorkerLost", name: "a longer timeout holds for it too", when: snap(claimedBy("w1"), lost("w1", 30*time.Second), unread("w1")), does: "again in 30s", because: "14m30s left"},
	{rule: "WorkerLost", name: "not while its jobs are still being read", when: snap(claimedBy("w1"), blind("w1", 4*time.Second), lostTimeout(0)), does: "again in 1m26s", because: "still being read"},
	{rule: "WorkerLost", name: "unheard of", when: snap(claim("w9")), does: retry, because: `"w9"`},
	{rule: "Claimed", name: "places", when: snap(claim("w1"), offered("w1", "w2"), admitted("w1", time.Minute)), does: "w1: create Job train | w2: delete Workload wl", because: `Placing the job on "w1"`,
		unless: snap(nominated("w1"), offered("w1"), admitted("w1", time.Minute)), then: "AdmittedSomewhere"},
	{rule: "Claimed", name: "places only what is admitted", when: snap(claim("w1"), offered("w1")), does: "again in 50s"},
	{rule: "Claimed", name: "but not for ever", when: snap(claim("w1"), offered("w1"), claimedFor(time.Minute)), does: retry, because: "could not be placed there within 1m0s"},
	{rule: "Claimed", name: "placing fails", when: snap(placing, trouble("webhook down")), does: "manager: set check of wl to Pending | w1: create Job train | again in 50s", because: "webhook down"},
	{rule: "Claimed", name: "placing fails for long", when: snap(placing, claimedFor(time.Minute), trouble("webhook down")), does: retry, because: "webhook down"},
	{rule: "Claimed", name: "placing only takes its time", when: snap(placing, claimedFor(time.Hour)), does: "w1: create Job train"},
	{rule: "Claimed", name: "no deadline", when: snap(placing, claimedFor(time.Hour), trouble("webhook down"), func(s *plan.Snapshot) { s.Policy.PlaceTimeout = 0 }), does: "w1: create Job train"},
	{rule: "Claimed", name: "what runs is no matter of the deadline", when: snap(claimedBy("w1"), claimedFor(time.Hour), trouble("edits are refused"), managerStatus(map[string]any{}))},
	{rule: "Claimed", name: "completes the claim first", when: snap(twoWorkloads, nominated("w1"), offered("w1"), admitted("w1", time.Minute), claimFirst), does: "manager: claim wl2 for w1"},
	{rule: "Claimed", name: "a claim that cannot be completed", when: snap(twoWorkloads, offered("w1"), admitted("w1", time.Minute), claimFirst),
		does: "manager: set check of wl to Retry, set check of wl2 to Retry", because: "Not all Workloads"},
	{rule: "Claimed", name: "confirms", when: snap(claimedBy("w1"), check(kueue.CheckStatePending)), does: "manager: set check of wl to Ready", because: `The workload was admitted on "w1"`},
	{rule: "Claimed", name: "mirrors", when: snap(claimedBy("w1"), started, jobStatus("w1", runs)), does: mirrors},
	{rule: "Claimed", name: "has nothing to do", when: snap(claimedBy("w1"), started, jobStatus("w1", runs), managerStatus(runs))},
	{rule: "Claimed", name: "mirrors what the manager could not keep once only", when: snap(claimedBy("w1"), started, jobStatus("w1", novel), managerStatus(runs), kept(novel, runs))},
	{rule: "Claimed", name: "mirrors it again when the manager lost more", when: snap(claimedBy("w1"), started, jobStatus("w1", novel), kept(novel, runs)), does: mirrors},
	{rule: "Claimed", name: "edits follow", when: snap(claimedBy("w1"), started, jobStatus("w1", runs), managerStatus(runs), func(s *plan.Snapshot) { s.Jobs[0].Object["spec"].(map[string]any)["backoffLimit"] = int64(2) }), does: "w1: edit Job train"},
	{rule: "Claimed", name: "priority follows", when: snap(claimedBy("w1"), priority(9)), does: "w1: set priority of wl"},
	{rule: "Claimed", name: "copy vanished", when: snap(claimedBy("w1"), on("w1", noCopies), sought("w1", "")), does: retry, because: "the Workload is gone"},
	{rule: "Claimed", name: "job vanished", when: snap(claimedBy("w1"), on("w1", noJobThere), askedForJob), does: retry, because: "the Job is gone"},
	{rule: "Claimed", name: "foreign job", when: snap(claim("w1"), offered("w1"), admitted("w1", time.Minute), foreign("w1")), does: retry, because: "Ferry did not create"},
}

var timeIsUp = copyCondition("w1", kueue.WorkloadEvicted, "DeactivatedDueTo"+kueue.WorkloadMaximumExecutionTimeExceeded)

// maxTime: the job may run for a minute.
func maxTime(s *plan.Snapshot) { s.Workloads[0].Spec.MaximumExecutionTimeSeconds = ptr.To[int32](60) }
