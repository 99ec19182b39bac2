package plan_test

import (
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

const nominateAll = "manager: nominate [w1 w2 w3] for wl"

func place(p placement.Placement, name string) with {
	return func(s *plan.Snapshot) { s.Policy.Placement, s.Policy.Dispatcher = p, name }
}

func serves(_ *plan.Snapshot, w *plan.Worker) { w.Serves, w.Why = false, `no LocalQueue "team"` }

func fresh(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].LastTransitionTime = now0 }

func message(m string) with {
	return manager(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].Message = m })
}

func inadmissible(worker string) with {
	return copies(worker, func(c *kueue.Workload) {
		setCondition(c, kueue.WorkloadQuotaReserved, false, kueue.WorkloadInadmissible, time.Minute)
	})
}

// offers: no worker holds the job yet.
var offers = []ruleCase{
	{rule: "WaitForChecks", name: "says so", when: snap(otherCheck(kueue.CheckStatePending)), does: "manager: set check of wl to Pending", because: "budget",
		unless: snap(otherCheck(kueue.CheckStateReady)), then: "Nominate"},
	{rule: "WaitForChecks", name: "removes", when: snap(nominated("w1"), offered("w1"), otherCheck(kueue.CheckStateRetry)), does: "manager: set check of wl to Pending | w1: delete Workload wl"},
	{rule: "WaitForChecks", name: "informs later", when: snap(otherCheck(kueue.CheckStatePending), manager(fresh)), does: "again in 2s"},
	{rule: "WaitForChecks", name: "said already", when: snap(otherCheck(kueue.CheckStatePending), message("Waiting for other admission checks: budget"))},
	{rule: "WaitForCleanup", name: "an old copy that won", when: snap(offered("w2"), admitted("w2", time.Minute), evictedSince()), does: "manager: set check of wl to Pending | w2: delete Workload wl | again in 14m0s", because: "w2",
		unless: snap(nominated("w1"), offered("w2"), admitted("w2", time.Minute), evictedSince(), offered("w1")), then: "Nominate"},
	{rule: "WaitForCleanup", name: "though another controller nominated at once", when: snap(nominated("w1"), offered("w2"), admitted("w2", time.Minute), evictedSince()), does: "manager: set check of wl to Pending | w2: delete Workload wl | again in 14m0s"},
	{rule: "Nominate", name: "an offer evicted there rests", when: snap(nominated("w1"), offered("w1"), outOfConfig("w2", 0), outOfConfig("w3", 0), copies("w1", evictedJustNow), manager(fresh)), does: "again in 2s"},
	{rule: "Nominate", name: "an offer evicted there is made anew after a while", when: snap(nominated("w1"), offered("w1"), outOfConfig("w2", 0), outOfConfig("w3", 0), copies("w1", evictedLongAgo), manager(fresh)), does: "w1: delete Workload wl | again in 2s"},
	{rule: "WaitForCleanup", name: "a first look after a restart", when: snap(evictedSince(), manager(fresh), lost("w2", time.Second)), does: "again in 2s",
		unless: snap(evictedSince(), manager(fresh), lost("w2", time.Minute)), then: "Nominate"},
	{rule: "Nominate", name: "a first look holds up no job that never ran", when: snap(nominated("w1", "w3"), offered("w1", "w3"), manager(fresh), lost("w2", time.Second)), does: "again in 2s"},
	{rule: "Nominate", name: "an old offer without a job holds up nobody", when: snap(offered("w2"), evictedSince()), does: "manager: nominate [w1 w3] for wl | w2: delete Workload wl"},
	{rule: "Nominate", name: "an ended offer is made anew", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), finishedOn("w1", time.Minute)), does: "manager: set check of wl to Pending | w1: delete Workload wl"},
	{rule: "Nominate", name: "a drifted offer is made anew", when: snap(nominated("w1"), offered("w1"), manager(moreParallel), outOfConfig("w2", 0), outOfConfig("w3", 0)), does: "manager: set check of wl to Pending | w1: delete Workload wl"},
	{rule: "WaitForCleanup", name: "of an old job", when: snap(offered("w2"), placed("w2"), evictedSince(), manager(fresh)), does: "w2: " + deleteBoth + " | again in 2s"},
	{rule: "WaitForCleanup", name: "on its way out", when: snap(offered("w2"), admitted("w2", time.Minute), copies("w2", leaving), evictedSince(), manager(fresh)), does: "again in 2s"},
	{rule: "AdmittedSomewhere", name: "claims, and places nothing", when: snap(nominated("w1", "w2"), offered("w1", "w2"), admitted("w2", time.Minute)), does: "manager: claim wl for w2", because: `"w2"`,
		unless: snap(nominated("w1", "w2"), offered("w1", "w2")), then: "Nominate"},
	{rule: "AdmittedSomewhere", name: "the first wins", when: snap(nominated("w1", "w2"), offered("w1", "w2"), admitted("w1", time.Second), admitted("w2", time.Minute)), does: "manager: claim wl for w2"},
	{rule: "AdmittedSomewhere", name: "equal answers are decided by an order that the job has of its own", when: snap(nominated("w1", "w2"), offered("w1", "w2"), admitted("w2", time.Minute), admitted("w1", time.Minute)), does: "manager: claim wl for w2"},
	{rule: "Nominate", name: "an admission without a nomination wins nothing", when: snap(offered("w1"), admitted("w1", time.Minute)), does: nominateAll + " | w1: delete Workload wl"},
	{rule: "Nominate", name: "a foreign job cannot win", when: snap(nominated("w1"), offered("w1"), admitted("w1", time.Minute), foreign("w1")), does: "manager: nominate [w2 w3] for wl | w1: delete Workload wl"},
	{rule: "Nominate", name: "names first", when: snap(), does: nominateAll, because: "Offered to w1; w2; w3"},
	{rule: "Nominate", name: "copies only for persisted names", when: snap(nominated("w1")), does: nominateAll + " | w1: create Workload wl"},
	{rule: "Nominate", name: "settled", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), message("Offered to w1; w2; w3"))},
	{rule: "Nominate", name: "skips", when: snap(on("w1", serves), foreign("w2")), does: "manager: nominate [w3] for wl",
		because: `Offered to w3; skipped w1: no LocalQueue "team"; w2: holds a Job of this name that Ferry did not create`},
	{rule: "Nominate", name: "keeps who is out of reach", when: snap(nominated("w1", "w2"), offered("w1", "w2"), lost("w2", time.Minute)),
		does: "manager: nominate [w1 w2 w3] for wl", because: "w2 (out of reach)"},
	{rule: "Nominate", name: "the best first", when: snap(byFit, fitting("w1", capacity.FitsLater), fitting("w2", capacity.FitsNominal), fitting("w3", capacity.NeverFits)), does: "manager: nominate [w2] for wl", because: "Offered to w2 (fits now); skipped w1: fits once others end; w3: never fits: too much"},
	{rule: "Nominate", name: "whom it fits now, in place of who has no room", when: snap(byFit, nominated("w1"), offered("w1"), fitting("w1", capacity.FitsLater), fitting("w2", capacity.FitsBorrowing), fitting("w3", capacity.Unknown)), does: "manager: nominate [w2] for wl", because: "Offered to w2 (fits now, by borrowing)"},
	{rule: "Nominate", name: "not while who has no room has given it to the job", when: snap(byFit, nominated("w1"), offered("w1"), reservedOn("w1"), fitting("w1", capacity.FitsLater), fitting("w2", capacity.FitsNominal)), does: "manager: set check of wl to Pending | again in 59m0s", because: "Offered to w1 (quota reserved"},
	{rule: "Nominate", name: "nobody whom it ever fits", when: snap(byFit, fitting("w1", capacity.NeverFits), fitting("w2", capacity.NeverFits), fitting("w3", capacity.NeverFits)), does: "manager: set check of wl to Pending", because: "No worker can take the job: w1: never fits: too much"},
	{rule: "Nominate", name: "keeps who is being read again", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), blind("w2", 10*time.Second), manager(fresh)),
		does: "again in 2s", because: "Offered to w1; w2 (its objects are still being read); w3"},
	{rule: "Nominate", name: "though that outlasts a short workerLostTimeout", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), blind("w2", 80*time.Second), lostTimeout(0), message("Offered to w1; w2 (its objects are still being read); w3")),
		does: "again in 10s"},
	{rule: "Nominate", name: "but not for ever", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), blind("w2", 15*time.Minute)),
		does: "manager: nominate [w1 w3] for wl | w2: delete Workload wl", because: "skipped w2: its objects are still being read"},
	{rule: "Nominate", name: "makes no offer to who cannot be read", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w3"), blind("w2", 10*time.Second), manager(fresh)), does: "again in 2s"},
	{rule: "Nominate", name: "an admission by who cannot be read waits", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), admitted("w2", time.Second), blind("w2", 10*time.Second), manager(fresh)), does: "again in 2s"},
	{rule: "Nominate", name: "withdraws from who is given up", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), withdrawn("w2"), admitted("w2", time.Second)),
		does: "manager: nominate [w1 w3] for wl | w2: delete Workload wl", because: "skipped w2: is being withdrawn from"},
	{rule: "Nominate", name: "also when that is out of reach", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w3"), lost("w2", time.Second), withdrawn("w2")), does: "manager: nominate [w1 w3] for wl"},
	{rule: "Nominate", name: "nobody", when: snap(lost("w1", time.Minute), lost("w2", time.Minute), lost("w3", time.Minute)), does: "manager: set check of wl to Pending", because: "No worker can take the job: w1: out of reach; w2"},
	{rule: "Nominate", name: "nobody configured", when: snap(func(s *plan.Snapshot) { s.Workers = nil }, manager(fresh)), does: "again in 2s", because: "none is configured"},
	{rule: "Nominate", name: "Incremental's first round", when: snap(place(placement.Incremental{StepSize: 2, Round: time.Minute}, "")), does: "manager: nominate [w1 w2] for wl"},
	{rule: "Nominate", name: "Incremental waits", when: snap(nominated("w1"), offered("w1"), manager(fresh), place(placement.Incremental{StepSize: 1, Round: time.Minute}, "")), does: "again in 2s"},
	{rule: "Nominate", name: "External waits", when: snap(place(placement.External{}, "example.com/d")), does: "manager: set check of wl to Pending", because: `"example.com/d" to nominate`},
	{rule: "Nominate", name: "External copies", when: snap(nominated("w2"), manager(fresh), place(placement.External{}, "example.com/d")), does: "w2: create Workload wl | again in 2s", because: "Offered to w2"},
	{rule: "Nominate", name: "says what the worker says", when: snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), inadmissible("w1"), manager(fresh)), does: "again in 2s", because: "w1 (because Inadmissible)"},
	{rule: "Nominate", name: "removes from who left the config", when: snap(nominated("w1", "w2", "w3"), offered("w1"), outOfConfig("w1", 0)), does: "manager: nominate [w2 w3] for wl | w1: delete Workload wl | w2: create Workload wl | w3: create Workload wl"},
	{rule: "Nominate", name: "completes a nomination first", when: snap(twoWorkloads, func(s *plan.Snapshot) { s.Workloads[0].Status.NominatedClusterNames = []string{"w1", "w2", "w3"} }),
		does: "manager: nominate [w1 w2 w3] for wl2"},
	{rule: "Nominate", name: "priority follows", when: snap(nominated("w1"), offered("w1"), priority(9), manager(fresh), place(placement.External{}, "d")), does: "w1: set priority of wl | again in 2s"},
}

// byFit: the best worker is asked first.
func byFit(s *plan.Snapshot) {
	s.Policy.Placement = placement.Best{AtOnce: 1, After: time.Hour, Weights: placement.Weights{Fits: 1}}
}

func fitting(worker string, class capacity.Class) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Fit = capacity.Fit{Class: class, Why: "too much"} })
}

func reservedOn(worker string) with {
	return copyCondition(worker, kueue.WorkloadQuotaReserved, "QuotaReserved")
}
