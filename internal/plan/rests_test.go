package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/plan"
)

// TestRests: who sends a job back because of what happened on its worker gives the worker a rest, once.
func TestRests(t *testing.T) {
	for name, c := range map[string]struct {
		when    plan.Snapshot
		rests   bool
		lenient bool
	}{
		"out of sync":       {snap(claimedBy("w1"), copyCondition("w1", kueue.WorkloadFinished, "OutOfSync")), true, false},
		"copy gone":         {snap(claimedBy("w1"), on("w1", noCopies), sought("w1", "")), true, true},
		"job gone":          {snap(claimedBy("w1"), on("w1", noJobThere), askedForJob), true, true},
		"evicted":           {snap(claimedBy("w1"), copyCondition("w1", kueue.WorkloadEvicted, "Preempted")), true, true},
		"not placed":        {snap(placing, claimedFor(time.Minute), trouble("webhook down")), true, false},
		"lost":              {snap(claimedBy("w1"), lost("w1", time.Hour)), false, false},
		"changed":           {snap(claimedBy("w1"), manager(moreParallel)), false, false},
		"several, one rest": {snap(twoWorkloads, claimedBy("w1"), on("w1", noJobThere), askedForJob), true, true},
	} {
		var found []plan.Rest
		for _, a := range plan.Decide(c.when).Manager {
			if set, ok := a.(plan.SetCheck); ok && set.Rest != nil {
				found = append(found, *set.Rest)
			}
		}
		switch {
		case !c.rests && len(found) > 0, c.rests && len(found) != 1:
			t.Errorf("%s: rests are %v", name, found)
		case c.rests && (found[0].Worker != "w1" || found[0].Lenient != c.lenient || found[0].Why == ""):
			t.Errorf("%s: the rest is %+v", name, found[0])
		}
	}
}

// TestRestIsSaid: who rests is not asked, and the message says until when.
func TestRestIsSaid(t *testing.T) {
	p := plan.Decide(snap(on("w2", func(_ *plan.Snapshot, w *plan.Worker) {
		w.Serves, w.Why, w.AskAgain = false, "this job was evicted there", now.Add(time.Minute)
	})))
	if !strings.Contains(p.Because, "w2: this job was evicted there (asked again at 10:01:00Z)") {
		t.Errorf("because %q", p.Because)
	}
	if p.Again != time.Minute {
		t.Errorf("looks again in %s", p.Again)
	}
	if n, ok := p.Manager[0].(plan.Nominate); !ok || slices.Contains(n.Workers, "w2") {
		t.Errorf("plan is %s", show(p))
	}
}

// TestWaitsFor: a refused action holds up only what has to come after it.
func TestWaitsFor(t *testing.T) {
	for _, c := range []struct {
		action, refused plan.Action
		want            bool
	}{
		{plan.Delete{GVK: kueue.SchemeGroupVersion.WithKind("Workload")}, plan.Delete{GVK: jobKind.GVK}, true},
		{plan.Delete{GVK: jobKind.GVK}, plan.Delete{GVK: jobKind.GVK}, false},
		{plan.Delete{GVK: jobKind.GVK}, plan.Delete{GVK: kueue.SchemeGroupVersion.WithKind("Workload")}, false},
		{plan.SetPriority{}, plan.EditJob{}, true},
		{plan.Resize{}, plan.EditJob{}, true},
		{plan.CreateWorkload{}, plan.EditJob{}, false},
		{plan.CreateJob{}, plan.CreateJob{}, false},
		{plan.EditJob{}, plan.SetPriority{}, false},
	} {
		if got := plan.WaitsFor(c.action, c.refused); got != c.want {
			t.Errorf("%T waits for a refused %T: %v", c.action, c.refused, got)
		}
	}
}
