package plan_test

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// unheld makes a worker one of the fleet that the config does not name.
func unheld(worker string) with { return outOfConfig(worker, time.Minute) }

// forged are marks with another UID: that of this job was never told to the worker.
func forged(worker string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		for _, c := range w.Workloads {
			c.Annotations[kueue.MultiKueueOriginUIDAnnotation] = "a-guess"
		}
		for _, job := range w.Jobs {
			annotations := job.GetAnnotations()
			annotations[kueue.MultiKueueOriginUIDAnnotation] = "a-guess"
			job.SetAnnotations(annotations)
		}
	})
}

// saw is what this process knows: all claims from a number of evictions on, of which these are the workers.
func saw(from int64, by ...string) with {
	return func(s *plan.Snapshot) {
		past := plan.Past{From: from, By: map[string]string{}}
		for i, worker := range by {
			wl := newWorkload("wl")
			past.By[plan.Reservation(evictedTimes(wl, from+int64(i)))] = worker
		}
		s.Past = map[types.UID]plan.Past{"wl-uid": past}
	}
}

func evictedTimes(wl *kueue.Workload, n int64) *kueue.Workload {
	if n > 0 {
		wl.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted", Count: int32(n)}}}
	}
	return wl
}

// marked gives everything on a worker the token of a reservation.
func marked(worker, reservation string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		for _, c := range w.Workloads {
			c.Annotations[kinds.ReservationAnnotation] = reservation
		}
	})
}

func reservedLongAgo(wl *kueue.Workload) {
	setCondition(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Hour)
}

// resultOf is a finished job on a worker, of the reservation before the present one.
func resultOf(worker string) with {
	return all(offered(worker), admitted(worker, time.Minute), placed(worker), started, finishedOn(worker, time.Second), jobStatus(worker, ended), evictedSince(), manager(fresh))
}

// words: what a worker says without the claim counts only if it can be true.
var words = []ruleCase{
	{rule: "FinishedOnWorker", name: "of a reservation before a restart", when: snap(resultOf("w1")), does: mirrors},
	{rule: "FinishedOnWorker", name: "of a claim that was seen", when: snap(resultOf("w1"), saw(0, "w1")), does: mirrors},
	{rule: "FinishedOnWorker", name: "also by who left the config", when: snap(resultOf("w1"), unheld("w1"), saw(0, "w1")), does: mirrors},
	{rule: "WaitForCleanup", name: "the result of another's claim is none", when: snap(resultOf("w1"), saw(0, "w2")), does: "w1: " + deleteBoth + " | again in 2s",
		unless: snap(resultOf("w1"), saw(0, "w1")), then: "FinishedOnWorker"},
	{rule: "WaitForCleanup", name: "nor is one of a reservation that nobody claimed", when: snap(resultOf("w1"), saw(0)), does: "w1: " + deleteBoth + " | again in 2s"},
	{rule: "WaitForCleanup", name: "nor is one of a reservation that never was", when: snap(resultOf("w1"), marked("w1", "7-7")), does: "w1: " + deleteBoth + " | again in 2s"},
	{rule: "Nominate", name: "nor is one of the present reservation without its claim", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), placed("w1"), started, jobStatus("w1", ended), finishedOn("w1", time.Second), manager(fresh)), does: "w1: " + deleteBoth + " | again in 2s"},
	{rule: "Claimed", name: "late word of who had it before another", when: snap(resultOf("w1"), claimedBy("w2"), saw(0, "w3")), does: "w1: " + deleteBoth},
	{rule: "Nominate", name: "objects of a worker that never had the job hold up nobody", when: snap(offered("w3"), admitted("w3", time.Minute), placed("w3"), forged("w3"), unheld("w3")),
		does: "manager: nominate [w1 w2] for wl | w3: " + deleteBoth, unless: snap(offered("w3"), admitted("w3", time.Minute), placed("w3"), evictedSince(), unheld("w3")), then: "WaitForCleanup"},
	{rule: "Nominate", name: "nor do those of another origin there", when: snap(unheld("w3"), holder("w3", old)), does: "manager: nominate [w1 w2] for wl",
		unless: snap(holder("w3", old)), then: "WaitForCleanup"},
	{rule: "WaitForCleanup", name: "not for ever", when: snap(offered("w2"), placed("w2"), evictedSince(), manager(fresh)), does: "w2: " + deleteBoth + " | again in 2s",
		unless: snap(manager(reservedLongAgo), offered("w2"), placed("w2"), evictedSince()), then: "Nominate"},
	{rule: "EvictedOnManager", name: "objects of a worker that never had the job keep no quota", when: snap(offered("w3"), placed("w3"), forged("w3"), unheld("w3"), managerCondition(kueue.WorkloadEvicted), managerJob(active)),
		does: "manager: mirror status of Job train | w3: " + deleteBoth, unless: snap(), then: "Nominate"},
	{rule: "EvictedOnManager", name: "nor does what cannot be removed, for ever", when: snap(claimedBy("w1"), managerJob(active), lostTimeout(0), manager(evictedLongBefore)), does: "manager: mirror status of Job train | w1: " + deleteBoth},
}

func evictedLongBefore(wl *kueue.Workload) {
	setCondition(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Hour)
	setCondition(wl, kueue.WorkloadEvicted, true, "Preempted", time.Hour)
}
