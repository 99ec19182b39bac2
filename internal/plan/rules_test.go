package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestOrder pins the order of the table, and says why where it matters.
func TestOrder(t *testing.T) {
	want := []string{
		"Unseen",           // first: a job that cannot be read is not a job that is gone
		"NotGated",         // before Gone: what lacks the gate is not seen either
		"Adopt",            // before Gone and all that removes: only what has marks can be removed
		"Gone",             // next: a job that is deleted leaves nothing behind, whatever its Workload says
		"UnknownCheck",     // before NotOurs: a check that cannot be attributed is no reason to remove a running copy
		"Finished",         // before FinishedOnWorker, and before NotManaged and NoQuota: a result stands, and is never turned into a rejection
		"FinishedOnWorker", // before all that takes a copy away: a result is never lost, also when the queue lost its check
		"KeptAway",         // before NotOurs, which says nothing to the user
		"NotOurs",          // before NoSuchKind: kinds that nobody sends to us are not rejected
		"NoSuchKind",
		"Over",             // before all that starts: a job that is over never runs again
		"NotManaged",       // before all that creates
		"NoQuota",          // before EvictedOnManager: both stop the copy, this one also when the eviction was missed
		"EvictedOnManager", // before Decided and Claimed: an eviction outranks what the check or the claim still says
		"Decided",          // before Claimed: a Retry that Kueue has not seen yet is not taken back
		"ReadyWithoutClaim",
		"OutOfSync",       // before Claimed: it looks like a finish, and is none
		"NoResult",        // before Claimed: so do these
		"EvictedOnWorker", // before Claimed, which would show the evicted copy as running
		"SpecDrift",       // before Claimed
		"WorkerLeaves",    // before WorkerLost, which waits, and before Claimed
		"WorkerLost",      // before Claimed, which needs the worker within reach
		"Held",            // before Claimed, which would take the job for gone
		"Unsure",          // before Claimed, for the same reason
		"Claimed",         // before all that offers: a job that has a worker is offered to nobody
		"WaitForChecks",   // before Nominate: nobody is asked before quota may be used
		"WaitForSiblings",
		"WaitForCleanup",
		"AdmittedSomewhere", // before Nominate, which would make more copies
		"WaitForFamily",     // before Nominate: the first of a family chooses
		"Nominate",          // always answers
	}
	var got []string
	for _, r := range plan.Rules() {
		got = append(got, r.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rules are\n%v, want\n%v", got, want)
	}
}

// TestRulesAreDescribed: the documentation is made from the table.
func TestRulesAreDescribed(t *testing.T) {
	for _, r := range plan.Rules() {
		if !strings.HasSuffix(r.Doc, ".") {
			t.Errorf("%s: the doc is no sentence: %q", r.Name, r.Doc)
		}
	}
}

func TestRules(t *testing.T) {
	answered, passed := map[string]bool{}, map[string]bool{}
	for _, c := range slices.Concat(endings, ends, claims, offers, words, sets, growths, takeovers) {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			p := plan.Decide(c.when)
			answered[p.Rule] = true
			if got, want := show(p), strings.TrimSuffix(c.rule+" | "+c.does, " | "); got != want {
				t.Errorf("plan is\n  %s\nwant\n  %s", got, want)
			}
			if !strings.Contains(p.Because, c.because) || p.Because == "" {
				t.Errorf("because %q, want it to contain %q", p.Because, c.because)
			}
			if c.then == "" {
				return
			}
			other := plan.Decide(c.unless)
			passed[c.rule] = true
			if other.Rule != c.then || c.then == c.rule {
				t.Errorf("otherwise the rule is %s, want %s", other.Rule, c.then)
			}
		})
	}
	for _, r := range plan.Rules() {
		if !answered[r.Name] {
			t.Errorf("no case in which %s answers", r.Name)
		}
		if !passed[r.Name] && r.Name != "Nominate" {
			t.Errorf("no case in which %s does not answer", r.Name)
		}
	}
}

// ruleCase says what a rule does, and with then, which rule answers unless its condition holds.
type ruleCase struct {
	rule, name    string
	when          plan.Snapshot
	does, because string
	unless        plan.Snapshot
	then          string
}

func noJob(s *plan.Snapshot)   { s.Jobs = nil }
func noCheck(s *plan.Snapshot) { s.Check = "" }

// noWorkload: without a Workload there is no check either.
func noWorkload(s *plan.Snapshot) { s.Workloads, s.Check = nil, "" }
func noKind(s *plan.Snapshot)     { s.Kind, s.OwnerKind = nil, "example.com/v1, Kind=Foo" }

func unreadable(s *plan.Snapshot) { s.Jobs, s.Unseen = nil, "the manager does not serve Job" }

func deleted(job *unstructured.Unstructured) { t := now0; job.SetDeletionTimestamp(&t) }

var (
	custom     = kinds.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Task"}, kinds.Fields{ManagedBy: kinds.Path{"spec", "managedBy"}})
	rayCluster = *kinds.NewTable([]string{"ray.io/raycluster"}).Rows()[0]
)

// of makes the job one of another kind.
func of(kind kinds.Kind) with {
	return func(s *plan.Snapshot) {
		s.Kind, s.Ref.Kind = &kind, kind.Name()
		s.Jobs[0].SetGroupVersionKind(kind.GVK)
	}
}

// host is the worker that this process saw the job on last.
func host(worker string) with { return func(s *plan.Snapshot) { s.Host = worker } }

func over(job *unstructured.Unstructured) { job.Object["status"] = ended }

func byUser(job *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(job.Object, "kubernetes.io/job-controller", "spec", "managedBy")
}

func suspendedStatus(job *unstructured.Unstructured) {
	job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Suspended", "status": "True"}}}
}

func active(job *unstructured.Unstructured) {
	job.Object["status"] = map[string]any{"active": int64(1), "startTime": "2026-03-01T09:50:00Z"}
}

const deleteBoth = "delete Job train, delete Workload wl"

// endings: the job is over, or is to stop.
var endings = []ruleCase{
	{rule: "Unseen", name: "keeps everything", when: snap(claimedBy("w1"), started, offered("w2"), unreadable), because: "the manager does not serve Job", unless: snap(claimedBy("w1"), noJob), then: "Gone"},
	{rule: "Unseen", name: "says why", when: snap(unreadable), does: "manager: set check of wl to Pending"},
	{rule: "Unseen", name: "says it once", when: snap(unreadable, message("The job cannot be read: the manager does not serve Job"))},
	{rule: "Unseen", name: "also when the worker is done", when: snap(claimedBy("w1"), started, jobStatus("w1", ended), copyCondition("w1", kueue.WorkloadFinished, "Succeeded"), unreadable), unless: snap(), then: "Nominate"},
	{rule: "Gone", name: "no job", when: snap(claimedBy("w1"), noJob), does: "w1: delete Workload wl, delete Job train", because: "gone", unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "Gone", name: "being deleted", when: snap(claimedBy("w1"), managerJob(deleted)), does: "w1: " + deleteBoth},
	{rule: "Gone", name: "beyond reach", when: snap(noJob, lost("w1", time.Hour))},
	{rule: "UnknownCheck", name: "keeps copies", when: snap(claimedBy("w1"), func(s *plan.Snapshot) { s.Check, s.CheckUnknown = "", true }),
		unless: snap(claimedBy("w1"), func(s *plan.Snapshot) { s.CheckUnknown = true }), then: "Claimed"},
	{rule: "NotOurs", name: "removes", when: snap(offered("w1"), placed("w1"), noCheck), does: "w1: " + deleteBoth, unless: snap(), then: "Nominate"},
	{rule: "NotOurs", name: "leaves a running job where it is", when: snap(claimedBy("w1"), offered("w2"), started, jobStatus("w1", runs), noCheck), does: "manager: mirror status of Job train | w2: delete Workload wl"},
	{rule: "NotOurs", name: "but not one that is evicted", when: snap(claimedBy("w1"), managerCondition(kueue.WorkloadEvicted), noCheck), does: "w1: " + deleteBoth},
	{rule: "NotOurs", name: "nor one without quota", when: snap(claimedBy("w1"), noReservation(), noCheck), does: "w1: " + deleteBoth},
	{rule: "NotOurs", name: "its Workload is gone: stops", when: snap(offered("w1"), placed("w1"), noWorkload, managerJob(active)), does: "w1: " + deleteBoth + " | again in 15m0s"},
	{rule: "NotOurs", name: "its Workload is gone: then shows it", when: snap(noWorkload, managerJob(active)), does: "manager: mirror status of Job train"},
	{rule: "NotOurs", name: "its Workload is gone: of some kinds the status may be the result", when: snap(noWorkload, of(custom), managerJob(active))},
	{rule: "NotOurs", name: "its Workload is gone: unless it was seen to run", when: snap(noWorkload, of(custom), managerJob(active), host("w1")), does: "manager: mirror status of Task train"},
	{rule: "NotOurs", name: "its Workload is gone: kinds that serve have no result", when: snap(noWorkload, of(rayCluster), managerJob(active)), does: "manager: mirror status of RayCluster train"},
	{rule: "NotOurs", name: "its Workload is gone: a result that says so stays", when: snap(noWorkload, managerJob(over), host("w1"))},
	{rule: "KeptAway", name: "it has no Workload, and never ran", when: snap(noWorkload), does: "manager: warn about train", because: "has made no Workload",
		unless: snap(noWorkload, managerJob(byUser)), then: "NotOurs"},
	{rule: "NotOurs", name: "no Workload of somebody else's job", when: snap(noWorkload, managerJob(active), managerJob(byUser))},
	{rule: "NoSuchKind", name: "rejects", when: snap(noKind), does: "manager: set check of wl to Rejected", because: `"example.com/v1, Kind=Foo"`, unless: snap(), then: "Nominate"},
	{rule: "NoSuchKind", name: "no owner", when: snap(noKind, func(s *plan.Snapshot) { s.OwnerKind = "" }), does: "manager: set check of wl to Rejected", because: "No multikueue adapter found"},
	{rule: "NoSuchKind", name: "switched off", when: snap(offered("w1"), noKind), does: "manager: set check of wl to Rejected | w1: delete Workload wl"},
	{rule: "NoSuchKind", name: "said already", when: snap(noKind, check(kueue.CheckStateRejected))},
	{rule: "Finished", name: "removes everywhere", when: snap(managerCondition(kueue.WorkloadFinished), claimedBy("w1"), offered("w2")), does: "w1: " + deleteBoth + " | w2: delete Workload wl",
		unless: snap(claimedBy("w1"), offered("w2")), then: "Claimed"},
	{rule: "Nominate", name: "opens the gate that blocked first", when: snap(asked3, blocking(3*time.Second, 9*time.Second, 0), orchestrated), does: "manager: set check of wl to Pending | w2: let wl preempt | again in 5m0s"},
	{rule: "Nominate", name: "opens no second one yet", when: snap(asked3, blocking(3*time.Second, 9*time.Second, 0), opened("w2", time.Minute), orchestrated), does: "manager: set check of wl to Pending | again in 4m0s"},
	{rule: "Nominate", name: "opens the next one after a time", when: snap(asked3, blocking(3*time.Second, 9*time.Second, 0), opened("w2", 5*time.Minute), orchestrated), does: "manager: set check of wl to Pending | w1: let wl preempt | again in 5m0s"},
	{rule: "Nominate", name: "does not wait for a lost worker", when: snap(asked3, blocking(3*time.Second, 9*time.Second, 0), opened("w2", time.Minute), lost("w2", time.Second), orchestrated), does: "w1: let wl preempt | again in 59s"},
	{rule: "Nominate", name: "leaves no gate closed where preemption is free", when: snap(asked3, blocking(3*time.Second, 9*time.Second, 0)), does: "manager: set check of wl to Pending | w1: let wl preempt | w2: let wl preempt"},
	{rule: "Finished", name: "keeps what ended there", when: snap(retain(20*time.Second), managerCondition(kueue.WorkloadFinished), managerStatus(ended), claimedBy("w1"), started, jobStatus("w1", ended), finishedOn("w1", time.Minute), offered("w2")), does: "w2: delete Workload wl | again in 19s"},
	{rule: "Over", name: "keeps what Kueue there has not seen end", when: snap(retain(20*time.Second), managerStatus(ended), claimedBy("w1"), started, jobStatus("w1", ended)), does: "again in 20s"},
	{rule: "Finished", name: "keeps it no longer", when: snap(retain(time.Second), managerCondition(kueue.WorkloadFinished), managerStatus(ended), claimedBy("w1"), started, jobStatus("w1", ended), finishedOn("w1", time.Minute)), does: "w1: " + deleteBoth},
	{rule: "Finished", name: "keeps nothing that may run", when: snap(retain(time.Hour), managerCondition(kueue.WorkloadFinished), claimedBy("w1")), does: "w1: " + deleteBoth},
	{rule: "Finished", name: "keeps nothing where it is to leave", when: snap(retain(time.Hour), managerCondition(kueue.WorkloadFinished), managerStatus(ended), claimedBy("w1"), started, jobStatus("w1", ended), finishedOn("w1", time.Minute), on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Leaving = true })), does: "w1: " + deleteBoth},
	{rule: "Finished", name: "though not managed", when: snap(managerCondition(kueue.WorkloadFinished), managerJob(byUser))},
	{rule: "NotManaged", name: "waits and removes", when: snap(offered("w1"), managerJob(byUser)), does: "manager: set check of wl to Pending | w1: delete Workload wl",
		because: "kubernetes.io/job-controller", unless: snap(offered("w1")), then: "Nominate"},
	{rule: "NotManaged", name: "says what to do", when: snap(managerJob(byUser)), does: "manager: set check of wl to Pending", because: "create it anew"},
	{rule: "NotManaged", name: "waits without quota", when: snap(noReservation(), managerJob(byUser))},
	{rule: "NotManaged", name: "since it was dispatched", when: snap(claimedBy("w1"), managerJob(byUser)), does: retry + " | w1: " + deleteBoth},
	{rule: "NotManaged", name: "since it was placed", when: snap(placing, managerJob(byUser)), does: retry + " | w1: delete Workload wl"},
	{rule: "NoQuota", name: "removes", when: snap(offered("w1"), placed("w1"), noReservation()), does: "w1: " + deleteBoth + " | again in 15m0s", because: "quota", unless: snap(offered("w1")), then: "Nominate"},
	{rule: "NoQuota", name: "shows stopped", when: snap(noReservation(), managerJob(active)), does: "manager: mirror status of Job train"},
	{rule: "NoQuota", name: "stopped and shown", when: snap(noReservation(), managerJob(suspendedStatus))},
	{rule: "NoQuota", name: "new job has time", when: snap(noReservation(), managerJob(func(j *unstructured.Unstructured) { j.SetCreationTimestamp(now0) })), does: "again in 2s"},
	{rule: "NoQuota", name: "lost host has time", when: snap(noReservation(), managerJob(active), lost("w1", time.Minute), func(s *plan.Snapshot) { s.Host = "w1" }), does: "again in 14m0s"},
	{rule: "NoQuota", name: "lost host is out of time", when: snap(noReservation(), managerJob(active), lost("w1", time.Hour), func(s *plan.Snapshot) { s.Host = "w1" }), does: "manager: mirror status of Job train"},
	{rule: "EvictedOnManager", name: "removes", when: snap(claimedBy("w1"), managerCondition(kueue.WorkloadEvicted)), does: "w1: " + deleteBoth + " | again in 14m59s", because: "evicted", unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "EvictedOnManager", name: "shows stopped once gone", when: snap(managerCondition(kueue.WorkloadEvicted), managerJob(active)), does: "manager: mirror status of Job train"},
	{rule: "EvictedOnManager", name: "says who does not let go", when: snap(managerCondition(kueue.WorkloadEvicted), offered("w1"), trouble("delete is forbidden")), does: "manager: set check of wl to Pending | w1: delete Workload wl | again in 14m59s", because: "w1 (delete is forbidden)"},
	{rule: "NoQuota", name: "says who does not let go", when: snap(noReservation(), offered("w1"), trouble("delete is forbidden")), does: "manager: set check of wl to Pending | w1: delete Workload wl | again in 15m0s", because: "w1 (delete is forbidden)"},
	{rule: "Decided", name: "retry", when: snap(claimedBy("w1"), check(kueue.CheckStateRetry)), does: "w1: " + deleteBoth, unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "Decided", name: "rejected", when: snap(offered("w2"), check(kueue.CheckStateRejected)), does: "w2: delete Workload wl"},
}
