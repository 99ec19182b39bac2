package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

// byMultiKueue takes Ferry's marks off what is on workers, as if MultiKueue had made it.
func byMultiKueue(workers ...string) with {
	return func(s *plan.Snapshot) {
		for _, name := range workers {
			on(name, func(_ *plan.Snapshot, w *plan.Worker) { unmark(w) })(s)
		}
	}
}

func unmark(w *plan.Worker) {
	for _, c := range w.Workloads {
		takeMarks(c)
	}
	for _, job := range w.Jobs {
		takeMarks(job)
	}
	w.Unmarked = plan.Unmarked{Workloads: w.Workloads, Jobs: w.Jobs}
	w.Foreign = len(w.Jobs) > 0
	w.Workloads, w.Jobs = nil, nil
}

func takeMarks(obj metav1.Object) {
	kept := map[string]string{}
	for name, value := range obj.GetAnnotations() {
		if !strings.HasPrefix(name, "ferry.dev/") && name != kueue.MultiKueueOriginUIDAnnotation {
			kept[name] = value
		}
	}
	obj.SetAnnotations(kept)
}

// jobOnly: the Workload's copy was adopted before Ferry was restarted.
func jobOnly(_ *plan.Snapshot, w *plan.Worker) { w.Unmarked.Workloads = nil }

func tiedToAnother(_ *plan.Snapshot, w *plan.Worker) {
	w.Unmarked.Jobs[0].SetLabels(map[string]string{kueue.MultiKueueOriginLabel: "m", kinds.PrebuiltWorkload: "other"})
}

func madeForAnother(_ *plan.Snapshot, w *plan.Worker) {
	w.Unmarked.Jobs[0].SetAnnotations(map[string]string{kueue.MultiKueueOriginUIDAnnotation: "elsewhere"})
}

func sought(worker, origin string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Sought = plan.Sought{At: now, Origin: origin} })
}

func holder(worker string, h plan.Holder) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Foreign, w.Holder = true, h })
}

func saysHeld(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].Message = reason.Held("w1", "old") }

var (
	runsOnly = all(claim("w1"), check(kueue.CheckStateReady))
	old      = plan.Holder{Origin: "old", Workload: "wl"}
)

// takeovers: another program dispatched the job, or Ferry did under another name.
var takeovers = []ruleCase{
	{rule: "Adopt", name: "what runs", when: snap(claimedBy("w1"), byMultiKueue("w1")), does: "w1: adopt Workload wl, adopt Job train", because: "w1", unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "Adopt", name: "what waits", when: snap(nominated("w1", "w2"), offered("w1", "w2"), byMultiKueue("w1", "w2")), does: "w1: adopt Workload wl | w2: adopt Workload wl", because: "w1, w2"},
	{rule: "Adopt", name: "the rest", when: snap(claimedBy("w1"), byMultiKueue("w1"), on("w1", jobOnly)), does: "w1: adopt Job train"},
	{rule: "Adopt", name: "what is to go", when: snap(claimedBy("w1"), byMultiKueue("w1"), managerCondition(kueue.WorkloadEvicted)), does: "w1: adopt Workload wl, adopt Job train"},
	{rule: "Adopt", name: "of two workers with copies", when: snap(offered("w2"), claimedBy("w1"), byMultiKueue("w1", "w2")), does: "w1: adopt Workload wl, adopt Job train"},
	{rule: "Adopt", name: "then what others have", when: snap(claimedBy("w1"), offered("w2"), byMultiKueue("w2")), does: "w2: adopt Workload wl"},
	{rule: "WorkerLost", name: "not that, as long as the first cannot be seen", when: snap(claimedBy("w1"), offered("w2"), byMultiKueue("w2"), lost("w1", time.Minute)), does: "manager: set check of wl to Ready | again in 14m0s"},
	{rule: "Adopt", name: "not the job of another Workload", when: snap(claimedBy("w1"), byMultiKueue("w1"), on("w1", tiedToAnother)), does: "w1: adopt Workload wl"},
	{rule: "Adopt", name: "not the job made for another", when: snap(claimedBy("w1"), byMultiKueue("w1"), on("w1", madeForAnother)), does: "w1: adopt Workload wl"},
	{rule: "WorkerLost", name: "nothing is adopted out of reach", when: snap(claimedBy("w1"), byMultiKueue("w1"), lost("w1", time.Minute)), does: "manager: set check of wl to Ready | again in 14m0s"},
	{rule: "AdmittedSomewhere", name: "where the job is already", when: snap(nominated("w1", "w2"), offered("w1", "w2"), admitted("w1", time.Hour), admitted("w2", time.Minute), placed("w2")), does: "manager: claim wl for w2"},
	{rule: "Unsure", name: "asks before it is gone", when: snap(runsOnly), does: "w1: look up Workload wl", because: `"w1"`, unless: snap(runsOnly, sought("w1", "")), then: "Claimed"},
	{rule: "Unsure", name: "the watch on jobs may be silent", when: snap(claimedBy("w1"), on("w1", noJobThere)), does: "w1: look up Job train", unless: snap(claimedBy("w1"), on("w1", noJobThere), askedForJob), then: "Claimed"},
	{rule: "Unsure", name: "the cache is behind", when: snap(runsOnly, sought("w1", "m")), does: "again in 1m0s"},
	{rule: "Claimed", name: "gone", when: snap(runsOnly, sought("w1", "")), does: retry, because: "the Workload is gone"},
	{rule: "Held", name: "by the Workload's copy", when: snap(runsOnly, sought("w1", "old")), does: "manager: set check of wl to Ready | again in 1m0s", because: `"old"`, unless: snap(claimedBy("w1")), then: "Claimed"},
	{rule: "Held", name: "by the job", when: snap(runsOnly, holder("w1", old)), does: "manager: set check of wl to Ready | again in 1m0s", because: `"old"`},
	{rule: "Held", name: "says so once", when: snap(runsOnly, sought("w1", "old"), manager(saysHeld)), does: "again in 1m0s"},
	{rule: "Held", name: "others remove their copies", when: snap(offered("w2"), runsOnly, sought("w1", "old"), manager(saysHeld)), does: "w2: delete Workload wl | again in 1m0s"},
	{rule: "Unsure", name: "somebody else's job", when: snap(runsOnly, holder("w1", plan.Holder{Origin: "other", Workload: "other"})), does: "w1: look up Workload wl"},
	{rule: "Claimed", name: "no more held", when: snap(claimedBy("w1"), manager(saysHeld)), does: "manager: set check of wl to Ready"},
	{rule: "WaitForCleanup", name: "held though evicted", when: snap(holder("w1", old)), does: "manager: set check of wl to Pending", because: `"old"`},
	{rule: "EvictedOnManager", name: "held is not stopped", when: snap(runsOnly, holder("w1", old), managerCondition(kueue.WorkloadEvicted), started, managerStatus(runs))},
}

// TestAdoptedIsLikeMade: once its marks are on, a copy of MultiKueue's is treated as one of Ferry's.
func TestAdoptedIsLikeMade(t *testing.T) {
	for name, c := range map[string]plan.Snapshot{
		"runs":    snap(claimedBy("w1"), started, jobStatus("w1", runs)),
		"waits":   snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3")),
		"evicted": snap(claimedBy("w1"), copyCondition("w1", kueue.WorkloadEvicted, "Preempted")),
		"drifted": snap(claimedBy("w1"), manager(moreParallel)),
		"over":    snap(claimedBy("w1"), started, finishedOn("w1", time.Minute), jobStatus("w1", ended)),
	} {
		want := show(plan.Decide(c))
		made := clone(c)
		for i := range made.Workers {
			unmark(&made.Workers[i])
		}
		p := plan.Decide(made)
		if p.Rule != "Adopt" || len(p.Manager) > 0 {
			t.Errorf("%s: the plan is %s", name, show(p))
		}
		if got := show(plan.Decide(adopted(made, p))); got != want {
			t.Errorf("%s: afterwards the plan is\n  %s\nwant\n  %s", name, got, want)
		}
	}
}

// TestHeldIsTold: whichever rule holds a job, the plan says so, for those who count them.
func TestHeldIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		s    plan.Snapshot
		want bool
	}{
		"held":    {snap(runsOnly, sought("w1", "old")), true},
		"evicted": {snap(holder("w1", old)), true},
		"runs":    {snap(claimedBy("w1")), false},
		"waits":   {snap(nominated("w1"), offered("w1")), false},
	} {
		if p := plan.Decide(c.s); p.Held != c.want {
			t.Errorf("%s: %s says held=%v", name, p.Rule, p.Held)
		}
	}
}

// TestUnfencedPodsAreWarnedOf: MultiKueue's pods that nobody kept from running on the manager too, which Ferry does not see there.
func TestUnfencedPodsAreWarnedOf(t *testing.T) {
	adoptedSet := func(s *plan.Snapshot) {
		statefulSet(t)(s)
		claimedBy("w1")(s)
		unstructured.RemoveNestedField(s.Workers[0].Jobs[0].Object, "spec", "template", "metadata", "annotations")
		setHas(1)(s)
	}
	unseen := func(s *plan.Snapshot) { s.Pods = nil }
	group := all(pods(runningP, runningP), running("w1"), byMultiKueue("w1"))
	for name, c := range map[string]struct {
		s    plan.Snapshot
		want bool
	}{
		"pods":                    {snap(group, noJob), true},
		"pods, said before":       {snap(group, noJob, func(s *plan.Snapshot) { s.Told = []string{reason.Unfenced("w1", false)} }), false},
		"pods of a job that ends": {snap(group, noJob, managerCondition(kueue.WorkloadFinished)), false},
		"fenced pods":             {snap(group), false},
		"deleted pods of Ferry's": {snap(pods(runningP, runningP), running("w1"), noJob), false},
		"a set's":                 {snap(adoptedSet, unseen), true},
		"a set's, fenced":         {snap(adoptedSet), false},
		"a job":                   {snap(claimedBy("w1"), byMultiKueue("w1")), false},
	} {
		p := plan.Decide(c.s)
		warns := slices.ContainsFunc(p.Manager, func(a plan.Action) bool {
			warn, is := a.(plan.Warn)
			return is && len(warn.Workloads) > 0 && strings.Contains(warn.Message, "may run on the manager as well")
		})
		if warns != c.want {
			t.Errorf("%s: warns: %v; %s", name, warns, show(p))
		}
	}
}

// TestUnassignedIsCleanedUp: what nobody was asked to run is not taken for an offer, and goes before anybody is asked.
func TestUnassignedIsCleanedUp(t *testing.T) {
	s := snap(offered("w1"), admitted("w1", time.Minute), placed("w1"), byMultiKueue("w1"))
	after := plan.Decide(adopted(s, plan.Decide(s)))
	if got, want := show(after), "WaitForCleanup | manager: set check of wl to Pending | w1: delete Job train, delete Workload wl | again in 14m0s"; got != want {
		t.Errorf("the plan is\n  %s\nwant\n  %s", got, want)
	}
}

// adopted is the Snapshot after the plan's adoptions.
func adopted(s plan.Snapshot, p plan.Plan) plan.Snapshot {
	s = clone(s)
	for i := range s.Workers {
		w := &s.Workers[i]
		for _, a := range p.Workers[w.Name] {
			switch want := a.(plan.Adopt).Want.(type) {
			case *kueue.Workload:
				w.Workloads = append(w.Workloads, want)
			case *unstructured.Unstructured:
				w.Jobs = append(w.Jobs, want)
			}
		}
		w.Unmarked, w.Foreign = plan.Unmarked{}, false
	}
	return s
}

// TestPodsOfAnAdoptedSet: they have no marks, and get them only while one of them is not seen.
func TestPodsOfAnAdoptedSet(t *testing.T) {
	s := snap(statefulSet(t), claimedBy("w1"))
	marks := func(p plan.Plan) bool {
		return slices.ContainsFunc(p.Workers["w1"], func(a plan.Action) bool { _, is := a.(plan.MarkPods); return is })
	}
	if marks(plan.Decide(s)) {
		t.Error("the pods of a set that Ferry made have marks already")
	}
	unstructured.RemoveNestedField(s.Workers[0].Jobs[0].Object, "spec", "template", "metadata", "annotations")
	if p := plan.Decide(s); !marks(p) || p.Again != 5*time.Second {
		t.Errorf("the pods are not looked for: %s", show(p))
	}
	s.Workers[0].Pods = s.Pods
	if p := plan.Decide(s); marks(p) {
		t.Errorf("the pods are looked for though all are seen: %s", show(p))
	}
}

// statefulSet makes the job one with a pod.
func statefulSet(t *testing.T) with {
	return func(s *plan.Snapshot) {
		kind := kinds.NewTable([]string{"statefulset"}).ByName("StatefulSet.apps")
		if kind == nil {
			t.Fatal("no such kind")
		}
		s.Kind, s.Ref.Kind = kind, kind.Name()
		s.Jobs[0].SetGroupVersionKind(kind.GVK)
		s.Jobs[0].Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Always"}}}
		pod := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Pending"}}}
		pod.SetGroupVersionKind(kind.PodKind().GVK)
		pod.SetNamespace(s.Ref.Namespace)
		pod.SetName("train-0")
		s.Pods = []*unstructured.Unstructured{pod}
	}
}
