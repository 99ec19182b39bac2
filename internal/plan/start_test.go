package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

const noAccount = `FailedCreate: Job train: serviceaccount "trainer" not found`

// TestFollowStart: users are told what keeps a job from starting that was placed, and one that never ran leaves a worker where it cannot.
func TestFollowStart(t *testing.T) {
	const plain, why, away = `The workload was admitted on "w1"`, "none of its pods is ready: " + noAccount, "the worker is out of reach since 2026-03-01T09:58:00Z"
	stuck, runs := map[string]any{"ready": int64(0)}, map[string]any{"active": int64(1), "ready": int64(1)}
	waits := all(claimedBy("w1"), jobStatus("w1", stuck), mirrored(stuck), says(plain))
	told := all(waits, says(reason.But(plain, why)))
	ask := "w1: look for warnings about train"
	for name, test := range map[string]struct {
		when    with
		does    string
		message string
	}{
		"in its first seconds nobody asks":      {all(waits, readyFor(4*time.Second)), "Claimed | again in 6s", ""},
		"then its worker is asked":              {waits, "Claimed | " + ask, ""},
		"now and then":                          {all(waits, asked(20*time.Second)), "Claimed | again in 20s", ""},
		"and what it says is told":              {all(waits, warned(noAccount), asked(20*time.Second)), "Claimed | manager: set check of wl to Ready | again in 20s", reason.But(plain, why)},
		"once":                                  {all(told, warned(noAccount), asked(20*time.Second)), "Claimed | again in 20s", ""},
		"a new process takes nothing back":      {told, "Claimed | " + ask, ""},
		"until it runs":                         {all(told, jobStatus("w1", runs), mirrored(runs)), "Claimed | manager: set check of wl to Ready", plain},
		"of one that runs nobody asks":          {all(claimedBy("w1"), jobStatus("w1", runs), mirrored(runs), says(plain)), "Claimed", ""},
		"nor of one without a status":           {all(claimedBy("w1"), says(plain)), "Claimed", ""},
		"words of others stay":                  {all(claimedBy("w1"), jobStatus("w1", runs), mirrored(runs), says("Adopted")), "Claimed", ""},
		"one that never ran leaves":             {all(told, warned(noAccount), neverRan, readyFor(time.Hour)), "Claimed | manager: set check of wl to Retry", `did not start on worker "w1": ` + noAccount},
		"not before its time":                   {all(told, warned(noAccount), neverRan, readyFor(4*time.Minute), asked(time.Hour)), "Claimed | again in 1m0s", ""},
		"not without a reason":                  {all(waits, neverRan, readyFor(time.Hour), asked(time.Minute)), "Claimed | again in 1m0s", ""},
		"not if it may have run":                {all(told, warned(noAccount), readyFor(time.Hour), asked(time.Minute)), "Claimed | again in 1m0s", ""},
		"not if pods of it failed":              {all(told, jobStatus("w1", map[string]any{"failed": int64(1)}), mirrored(map[string]any{"failed": int64(1)}), warned(noAccount), neverRan, readyFor(time.Hour), asked(time.Minute)), "Claimed | again in 1m0s", ""},
		"not to nowhere":                        {all(told, warned(noAccount), neverRan, readyFor(time.Hour), asked(time.Minute), lost("w2", time.Hour), foreign("w3")), "Claimed | again in 1m0s", ""},
		"nor where that is off":                 {all(told, warned(noAccount), neverRan, readyFor(time.Hour), asked(time.Minute), func(s *plan.Snapshot) { s.Policy.StartTimeout = 0 }), "Claimed | again in 1m0s", ""},
		"a short loss is not told":              {all(claimedBy("w1"), says(plain), lost("w1", 20*time.Second)), "WorkerLost | again in 40s", ""},
		"a longer one is":                       {all(claimedBy("w1"), says(plain), lost("w1", 2*time.Minute)), "WorkerLost | manager: set check of wl to Ready | again in 13m0s", reason.But(plain, away)},
		"once, from whatever moment":            {all(claimedBy("w1"), says(reason.But(plain, away)), lost("w1", 3*time.Minute)), "WorkerLost | again in 12m0s", ""},
		"and taken back":                        {all(claimedBy("w1"), says(reason.But(plain, away)), jobStatus("w1", runs), mirrored(runs)), "Claimed | manager: set check of wl to Ready", plain},
		"also from one that does not start yet": {all(waits, says(reason.But(plain, away)), asked(time.Minute)), "Claimed | manager: set check of wl to Ready | again in 1m0s", plain},
	} {
		t.Run(name, func(t *testing.T) {
			s := snap(test.when)
			p := plan.Decide(s)
			if got := show(p); got != test.does {
				t.Errorf("got  %s\nwant %s", got, test.does)
			}
			if test.message == "" {
				return
			}
			set := p.Manager[0].(plan.SetCheck)
			if test.does[:7] == "Claimed" && set.State == kueue.CheckStateRetry {
				if set.Rest == nil || set.Rest.Worker != "w1" || !set.Event || len(set.Message) == 0 {
					t.Errorf("got %+v", set)
				}
				return
			}
			if set.Message != test.message {
				t.Errorf("message %q, want %q", set.Message, test.message)
			}
			if told := set.Tell != nil; told != (test.message != plain) {
				t.Errorf("the user's job is told: %v", told)
			}
		})
	}
}

// TestEvictedJobSaysWhatItWaitsFor: Kueue leaves its words about the reset in the check.
func TestEvictedJobSaysWhatItWaitsFor(t *testing.T) {
	const reset = "Reset to Pending after eviction. Previously: Retry"
	const waits = "Waiting for quota on the manager. Before: " + reset
	queued := func(wl *kueue.Workload) { setCondition(wl, kueue.WorkloadQuotaReserved, false, "Pending", time.Minute) }
	misplaced := func(wl *kueue.Workload) {
		setCondition(wl, kueue.WorkloadQuotaReserved, false, kueue.WorkloadInadmissible, time.Minute)
	}
	for name, test := range map[string]struct {
		when    with
		message string
	}{
		"its turn":                    {all(evictedSince(), says(reset), manager(queued)), waits},
		"once":                        {all(evictedSince(), says(waits), manager(queued)), ""},
		"people":                      {all(evictedSince(), says(waits), manager(misplaced)), "Waiting for quota on the manager: because Inadmissible. Before: " + reset},
		"not while it is evicted":     {all(evictedSince(), says(reset), manager(queued), managerCondition(kueue.WorkloadEvicted)), ""},
		"not one that was not before": {all(says(""), manager(queued)), ""},
	} {
		var got string
		p := plan.Decide(snap(test.when))
		for _, a := range p.Manager {
			if set, is := a.(plan.SetCheck); is {
				got = set.Message
			}
		}
		if p.Rule != "NoQuota" || got != test.message {
			t.Errorf("%s: %s says %q, want %q", name, p.Rule, got, test.message)
		}
	}
}

func says(message string) with {
	return manager(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].Message = message })
}

func readyFor(d time.Duration) with {
	return manager(func(wl *kueue.Workload) {
		wl.Status.AdmissionChecks[0].LastTransitionTime = metav1.NewTime(now.Add(-d))
	})
}

// mirrored: the manager's job has this status already.
func mirrored(status map[string]any) with {
	return func(s *plan.Snapshot) {
		s.Jobs[0].Object["status"] = status
		s.Jobs[0].Object["spec"].(map[string]any)["suspend"] = false
		s.Policy.StartTimeout = 5 * time.Minute
	}
}

func asked(next time.Duration) with {
	return on("w1", func(s *plan.Snapshot, w *plan.Worker) { w.AskWarnings = s.Now.Add(next) })
}

func warned(text string) with {
	return on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Warning = text })
}

func neverRan(s *plan.Snapshot) {
	on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.NeverRan = true })(s)
}
