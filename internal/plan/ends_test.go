package plan_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// ends: Kueue on the claim's worker ended the copy.
var ends = []ruleCase{
	{rule: "NoResult", name: "it never ran", when: snap(claimedBy("w1"), endedBy("FailedToStart")), does: retry, because: "could not start the job; offering it again: because FailedToStart",
		unless: snap(claimedBy("w1"), endedBy("Succeeded")), then: "FinishedOnWorker"},
	{rule: "NoResult", name: "its job is going", when: snap(claimedBy("w1"), endedBy("OwnerNotFound")), does: retry, because: "the Job is gone"},
	{rule: "NoResult", name: "its pod is going, and may run still", when: snap(of(podKind), claimedBy("w1"), started, jobStatus("w1", podRuns), endedBy("OwnerNotFound"), seenFor(time.Hour)), does: mirrorsPod, because: "waiting for its end"},
	{rule: "NoResult", name: "its pod is gone, having run", when: snap(of(podKind), claimedBy("w1"), started, managerStatus(podRuns), endedBy("OwnerNotFound"), on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Jobs = nil })), does: mirrorsPod, because: "counts as failed"},
	{rule: "WorkerLost", name: "its pod is not seen yet, after its copy ended", when: snap(of(podKind), claimedBy("w1"), started, managerStatus(podRuns), endedBy("OwnerNotFound"), blind("w1", time.Second)), does: "again in 14m59s", because: "still being read"},
	{rule: "WorkerLost", name: "its job is not seen yet, and may show a result", when: snap(claimedBy("w1"), started, endedBy("New"), seenFor(time.Hour), blind("w1", time.Second)), does: "again in 14m59s", because: "still being read"},
	{rule: "NoResult", name: "its pod never ran", when: snap(of(podKind), claimedBy("w1"), started, endedBy("OwnerNotFound")), does: retry, because: "the Pod is gone"},
	{rule: "Claimed", name: "its pod and all else is gone, having run", when: snap(of(podKind), claimedBy("w1"), started, managerStatus(podRuns), on("w1", func(_ *plan.Snapshot, w *plan.Worker) { w.Jobs, w.Workloads = nil, nil }), sought("w1", "")), does: mirrorsPod, because: "counts as failed"},
	{rule: "NoResult", name: "nobody knows yet", when: snap(claimedBy("w1"), endedBy("New"), seenFor(10*time.Second)), does: "again in 50s", because: `by "New"`},
	{rule: "NoResult", name: "nobody knows for long", when: snap(claimedBy("w1"), endedBy("New"), seenFor(time.Minute)), does: retry, because: "offering the job again"},
	{rule: "NoResult", name: "shows what runs meanwhile", when: snap(claimedBy("w1"), started, jobStatus("w1", runs), endedBy("New"), seenFor(10*time.Second)), does: mirrors + " | again in 50s"},
}

const mirrorsPod = "manager: mirror status of Pod train"

var (
	podKind = *kinds.NewTable([]string{"pod"}).ByName("Pod")
	podRuns = map[string]any{"phase": "Running"}
)

func endedBy(reason string) with {
	return all(copyCondition("w1", kueue.WorkloadFinished, reason), seenFor(time.Second))
}

// seenFor: this process knows of the end since then.
func seenFor(d time.Duration) with {
	return on("w1", func(s *plan.Snapshot, w *plan.Worker) {
		for _, c := range w.Workloads {
			if fact, holds := plan.FactOf(c, kueue.WorkloadFinished); holds {
				s.Since = map[plan.Fact]time.Time{fact: now.Add(-d)}
			}
		}
	})
}

// reasonsOfEnds are those that Kueue has, and one that it may yet invent.
var reasonsOfEnds = []string{
	kueue.WorkloadFinishedReasonSucceeded, kueue.WorkloadFinishedReasonFailed, kueue.WorkloadFinishedReasonOutOfSync,
	kueue.WorkloadFinishedReasonOwnerNotFound, kueue.WorkloadSliceReplaced, "FailedToStart", "Invented",
}

// TestEnds: of every kind, every reason for a Workload's end comes to an
// end in bounded time; only success and failure, or what the job itself shows, are a result.
func TestEnds(t *testing.T) {
	all := kinds.NewTable(kinds.Frameworks(), custom).Rows()
	for _, k := range all {
		if k.Many() || k.Group || k.Unlinked {
			continue // of several objects or Workloads, which these snapshots have not
		}
		for _, why := range reasonsOfEnds {
			for _, shown := range []bool{false, true} {
				status := map[string]any{"phase": "Running"}
				if shown {
					status = endedStatus(k)
				}
				s := snap(of(*k), claimedBy("w1"), started, jobStatus("w1", status), managerStatus(status), endedBy(why), seenFor(time.Hour))
				ended, known := k.Ended(s.Workers[0].Jobs[0])
				p := plan.Decide(s)
				got := show(p)
				isResult := why == "Succeeded" || why == "Failed" || ended && known
				switch {
				case isResult && p.Rule != "FinishedOnWorker" && p.Rule != "Over":
					t.Errorf("%s ended by %s, over %v: %s, want a result", k.Name(), why, ended, got)
				case !isResult && why == kueue.WorkloadFinishedReasonOwnerNotFound && k.Started(s.Workers[0].Jobs[0]):
					if !strings.Contains(p.Because, "waiting for its end") {
						t.Errorf("%s ended by %s: %s because %s, want it waited for", k.Name(), why, got, p.Because)
					}
				case !isResult && !strings.Contains(got, "to Retry"):
					t.Errorf("%s ended by %s, over %v: %s, want Retry", k.Name(), why, ended, got)
				}
			}
		}
	}
}

// TestEndsOfJobsUnseen: a worker that was connected to anew shows Workloads before jobs. Whatever its Kueue says of a
// copy's end, the job is not given up before it was looked at: it may show a result, or run still.
func TestEndsOfJobsUnseen(t *testing.T) {
	for _, k := range kinds.NewTable(kinds.Frameworks(), custom).Rows() {
		if k.Many() || k.Group || k.Unlinked {
			continue
		}
		for _, why := range reasonsOfEnds {
			s := snap(of(*k), claimedBy("w1"), started, managerStatus(map[string]any{"phase": "Running"}), endedBy(why), seenFor(time.Hour), blind("w1", time.Minute))
			if len(k.ManagedBy) > 0 {
				_ = unstructured.SetNestedField(s.Jobs[0].Object, kueue.MultiKueueControllerName, k.ManagedBy...)
			}
			p := plan.Decide(s)
			if got := show(p); got != "WorkerLost | again in 14m0s" {
				t.Errorf("%s ended by %s: %s because %s", k.Name(), why, got, p.Because)
			}
		}
	}
}

// endedStatus says in the words of as many kinds as possible that a job is over.
func endedStatus(*kinds.Kind) map[string]any {
	var conditions []any
	for _, t := range []string{"Complete", "Completed", "Succeeded", "Finished"} {
		conditions = append(conditions, map[string]any{"type": t, "status": "True", "lastTransitionTime": "2026-03-01T09:55:00Z"})
	}
	return map[string]any{"conditions": conditions, "phase": "Succeeded", "jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete", "terminalState": "Completed"}
}

// TestResultThatTheManagerRefuses: the Workload ends with the result's essence after a few tries, and quota never stays.
func TestResultThatTheManagerRefuses(t *testing.T) {
	result := all(claimedBy("w1"), started, finishedOn("w1", time.Minute), jobStatus("w1", ended))
	status := jobKind.Reflect(snap(result).Jobs[0], snap(result).Workers[0].Jobs[0], now)
	refused := func(asked map[string]any, tries int, final bool, since, again time.Duration) with {
		return func(s *plan.Snapshot) {
			s.Refused = map[types.UID]plan.Refusal{"job-uid": {Asked: asked, Tries: tries, Final: final, Since: now.Add(-since), Again: now.Add(again), Why: "too new"}}
		}
	}
	for name, c := range map[string]struct {
		when plan.Snapshot
		want string
	}{
		"not refused":                {snap(result), "FinishedOnWorker | " + mirrors},
		"refused, to be tried again": {snap(result, refused(status, 1, true, time.Second, -time.Second)), "FinishedOnWorker | " + mirrors},
		"refused a moment ago":       {snap(result, refused(status, 1, true, time.Second, 3*time.Second)), "FinishedOnWorker | again in 3s"},
		"another one was refused":    {snap(result, refused(runs, 9, true, time.Hour, 3*time.Second)), "FinishedOnWorker | " + mirrors},
		"refused too often":          {snap(result, refused(status, 3, true, time.Second, 3*time.Second)), "FinishedOnWorker | manager: finish wl"},
		"a fault that may pass":      {snap(result, refused(status, 3, false, time.Second, 3*time.Second)), "FinishedOnWorker | again in 3s"},
		"and does not":               {snap(result, refused(status, 7, false, time.Minute, 3*time.Second)), "FinishedOnWorker | manager: finish wl"},
		"while it runs":              {snap(claimedBy("w1"), started, jobStatus("w1", runs), refused(novel, 9, true, time.Hour, 3*time.Second)), "Claimed | again in 3s"},
	} {
		p := plan.Decide(c.when)
		if got := show(p); got != c.want {
			t.Errorf("%s: plan is\n  %s\nwant\n  %s", name, got, c.want)
		}
		for _, a := range p.Manager {
			if f, ok := a.(plan.Finish); ok && (f.Reason != "Succeeded" || !strings.Contains(f.Message, "because Succeeded") || !strings.Contains(f.Message, "too new")) {
				t.Errorf("%s: finishes by %s: %q", name, f.Reason, f.Message)
			}
		}
	}
}

// TestResultByTheJobItself: Kueue's reason says nothing, the job's status everything.
func TestResultByTheJobItself(t *testing.T) {
	failed := map[string]any{"failed": int64(1), "startTime": "2026-03-01T09:50:00Z", "conditions": []any{
		map[string]any{"type": "FailureTarget", "status": "True"}, map[string]any{"type": "Failed", "status": "True"},
	}}
	for _, c := range []struct {
		status map[string]any
		want   string
	}{{ended, "Succeeded"}, {failed, "Failed"}} {
		s := snap(claimedBy("w1"), jobStatus("w1", c.status), managerStatus(c.status), endedBy("OwnerNotFound"), seenFor(time.Minute))
		s.Jobs = []*unstructured.Unstructured{s.Jobs[0]}
		p := plan.Decide(s)
		for _, a := range p.Manager {
			if f, ok := a.(plan.Finish); !ok || f.Reason != c.want {
				t.Errorf("%s: %s by %+v", c.want, show(p), a)
			}
		}
		if p.Rule != "FinishedOnWorker" || len(p.Manager) != 1 {
			t.Errorf("%s: plan is %s", c.want, show(p))
		}
	}
}
