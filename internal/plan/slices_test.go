package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

var elasticMark = map[string]string{"kueue.x-k8s.io/elastic-job": "true"}

// elastic makes the job an elastic one of three pods, with one slice.
func elastic(s *plan.Snapshot) {
	s.Jobs[0].SetAnnotations(elasticMark)
	wants(3)(s)
	s.Workloads[0].Annotations = elasticMark
	s.Workloads[0].Spec.PodSets = []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 3}}
}

// wants is what the manager's job asks for, whatever its slices say.
func wants(pods int64) with {
	return func(s *plan.Snapshot) {
		_ = unstructured.SetNestedField(s.Jobs[0].Object, pods, "spec", "parallelism")
	}
}

// sized is the size of the present slice.
func sized(pods int32) with {
	return manager(func(wl *kueue.Workload) { wl.Spec.PodSets[0].Count = pods })
}

// runsElastic is the usual state of an elastic job on a worker; Kueue there has tied its copy to it.
func runsElastic(worker string) with {
	return all(claimedBy(worker), owned(worker, "wl"))
}

func owned(worker, copy string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		for _, c := range w.Workloads {
			if c.Name == copy {
				c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.Jobs[0], jobKind.GVK)}
			}
		}
	})
}

// grows adds the next slice as Kueue makes it: without quota first.
func grows(pods int32) with {
	return func(s *plan.Snapshot) {
		wants(int64(pods))(s)
		next := newWorkload("next")
		next.CreationTimestamp = metav1.NewTime(now)
		next.Annotations = map[string]string{"kueue.x-k8s.io/elastic-job": "true", "kueue.x-k8s.io/workload-slice-replacement-for": "team-a/wl"}
		next.Spec.PodSets = []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: pods}}
		s.Workloads = append(s.Workloads, next)
		noReservation()(&plan.Snapshot{Workloads: s.Workloads[1:]})
	}
}

// reserved gives the next slice its quota; Kueue assigns it to the worker of the one that it replaces.
func reserved(s *plan.Snapshot) {
	next, worker := s.Workloads[1], *s.Workloads[0].Status.ClusterName
	setCondition(next, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Second)
	next.Status.Admission, next.Status.ClusterName = &kueue.Admission{ClusterQueue: "cq"}, &worker
}

// replaced ends the first slice.
func replaced(wl *kueue.Workload) {
	setCondition(wl, kueue.WorkloadFinished, true, kueue.WorkloadSliceReplaced, time.Second)
}

// noFirst: Kueue on the manager is told to delete Workloads that are finished.
func noFirst(s *plan.Snapshot) { s.Workloads = s.Workloads[1:] }

func first(change func(*kueue.Workload)) with {
	return func(s *plan.Snapshot) { change(s.Workloads[0]) }
}

func firstCopy(worker string, change func(*kueue.Workload)) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { change(w.Workloads[0]) })
}

// nextOffered puts the copy of the next slice on a worker.
func nextOffered(worker string) with {
	return on(worker, func(s *plan.Snapshot, w *plan.Worker) {
		c := kinds.ProjectWorkload(s.Workloads[1], s.Ref, kinds.Marks{Origin: "m", Worker: worker, Reservation: plan.Reservation(s.Workloads[1])})
		c.UID = types.UID(worker + "-next")
		w.Workloads = append(w.Workloads, c)
	})
}

func nextAdmitted(worker string) with {
	return all(firstCopy(worker, replaced), secondCopy(worker, func(c *kueue.Workload) { setCondition(c, kueue.WorkloadAdmitted, true, "Admitted", time.Second) }))
}

// followed carries out the edits of the job on a worker that the plan has.
func followed(worker string) with {
	return func(s *plan.Snapshot) {
		for _, a := range plan.Decide(*s).Workers[worker] {
			if edit, ok := a.(plan.EditJob); ok {
				on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Jobs[0] = edit.Want })(s)
			}
		}
	}
}

var (
	growing = all(elastic, runsElastic("w1"), grows(5), reserved, first(replaced))
	grown   = all(growing, nextOffered("w1"), nextAdmitted("w1"), followed("w1"))
)

// growths: jobs of several slices.
var growths = []ruleCase{
	{rule: "Claimed", name: "a slice without quota changes nothing", when: snap(elastic, runsElastic("w1"), grows(5))},
	{rule: "Claimed", name: "one with quota is copied", when: snap(elastic, runsElastic("w1"), grows(5), reserved), does: "w1: create Workload next", because: `Growing the job on "w1"`},
	{rule: "Claimed", name: "also when its predecessor has ended", when: snap(growing), does: "w1: create Workload next"},
	{rule: "Claimed", name: "where its copy of an earlier reservation goes first", when: snap(growing, nextOffered("w1"), secondCopy("w1", ofEarlier)), does: "w1: delete Workload next"},
	{rule: "Claimed", name: "but not before other checks", when: snap(growing, second(func(wl *kueue.Workload) {
		wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, kueue.AdmissionCheckState{Name: "budget", State: kueue.CheckStatePending})
	})), does: "manager: set check of next to Pending", because: "budget"},
	{rule: "Claimed", name: "the job does not grow before it is admitted", when: snap(growing, nextOffered("w1")), does: "manager: set check of next to Pending", because: "Growing"},
	{rule: "Claimed", name: "and is shown meanwhile", when: snap(growing, started, nextOffered("w1"), jobStatus("w1", runs), second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].Message = `Growing the job on "w1"` })), does: mirrors},
	{rule: "Claimed", name: "then it does", when: snap(growing, nextOffered("w1"), nextAdmitted("w1")), does: "w1: edit Job train"},
	{rule: "Claimed", name: "then the check is Ready", when: snap(grown), does: "manager: set check of next to Ready"},
	{rule: "Claimed", name: "the old copy stays until Kueue has seen the new one", when: snap(grown, second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStateReady }))},
	{rule: "Claimed", name: "then it goes", when: snap(grown, owned("w1", "next"), second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStateReady })), does: "w1: delete Workload wl"},
	{rule: "Claimed", name: "the same when Kueue deleted the predecessor on the manager", when: snap(growing, noFirst), does: "w1: create Workload next"},
	{rule: "Claimed", name: "but not at once again where that was refused", when: snap(growing, on("w1", refuses)), does: "manager: set check of next to Pending | again in 20s", because: "quota exceeded"},
	{rule: "Claimed", name: "which is of no use before the next is admitted", when: snap(growing, nextOffered("w1"), noFirst), does: "manager: set check of next to Pending"},
	{rule: "Claimed", name: "nor needed then", when: snap(growing, nextOffered("w1"), nextAdmitted("w1"), noFirst), does: "w1: edit Job train"},
	{rule: "Claimed", name: "its copy goes all the same", when: snap(grown, owned("w1", "next"), second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStateReady }), noFirst), does: "w1: delete Workload wl"},
	{rule: "Claimed", name: "and a copy that vanished is missed", when: snap(grown, second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStateReady }), on("w1", noSecondCopy), noFirst), does: "manager: set check of next to Retry", because: "the Workload is gone"},
	{rule: "NoQuota", name: "one that lost its quota takes all along", when: snap(growing, nextOffered("w1"), second(func(wl *kueue.Workload) { wl.Status.Admission = nil }), noFirst), does: "w1: delete Job train, delete Workload next, delete Workload wl | again in 14m59s"},
	{rule: "EvictedOnWorker", name: "the slice by which a growing job runs", when: snap(growing, nextOffered("w1"), firstCopy("w1", preempted)), does: "manager: set check of next to Retry",
		unless: snap(growing, nextOffered("w1")), then: "Claimed"},
	{rule: "EvictedOnManager", name: "the present slice", when: snap(growing, nextOffered("w1"), second(func(wl *kueue.Workload) { preempted(wl); wl.Status.ClusterName = nil })),
		does: "w1: delete Workload next, delete Job train, delete Workload wl | again in 14m59s"},
	{rule: "NoQuota", name: "the present slice lost its quota", when: snap(elastic, runsElastic("w1"), grows(5), first(replaced)), does: "w1: delete Job train, delete Workload wl | again in 15m0s"},
	{rule: "FinishedOnWorker", name: "an earlier slice does not hold up the end", when: snap(grown, started, jobStatus("w1", ended), secondCopy("w1", func(c *kueue.Workload) { setCondition(c, kueue.WorkloadFinished, true, "Succeeded", time.Second) })), does: mirrors},
	{rule: "Claimed", name: "the end of a slice is not the job's", when: snap(elastic, runsElastic("w1"), firstCopy("w1", replaced))},
	{rule: "Finished", name: "all slices", when: snap(grown, managerCondition(kueue.WorkloadFinished)), does: "w1: delete Job train, delete Workload next, delete Workload wl"},
	{rule: "Claimed", name: "a job that was not placed yet is placed by the next slice", when: snap(growing, nextOffered("w1"), nextAdmitted("w1"), on("w1", noJobThere)), does: "w1: create Job train"},
	{rule: "Claimed", name: "the copy of a slice vanished", when: snap(grown, second(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = kueue.CheckStateReady }), on("w1", noSecondCopy)), does: "manager: set check of next to Retry", because: "the Workload is gone"},
	{rule: "Claimed", name: "an earlier slice's copies elsewhere go", when: snap(elastic, offered("w2"), runsElastic("w1"), grows(5), reserved, first(replaced), nextOffered("w1")), does: "manager: set check of next to Pending | w2: delete Workload wl"},

	{rule: "Claimed", name: "a slice that shrinks: the job first", when: snap(elastic, runsElastic("w1"), wants(2), sized(2)), does: "w1: edit Job train, resize wl"},
	{rule: "Claimed", name: "a stale job of another size changes nothing", when: snap(elastic, runsElastic("w1"), wants(1))},
	{rule: "Nominate", name: "an offer shrinks too", when: snap(elastic, nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), message("Offered to w1; w2; w3"), sized(2)), does: "w1: resize wl | w2: resize wl | w3: resize wl"},
	{rule: "SpecDrift", name: "a slice that wants more than its copy has", when: snap(elastic, runsElastic("w1"), sized(4)), does: retry},
	{rule: "SpecDrift", name: "a job that is not elastic", when: snap(elastic, notElastic, claimedBy("w1"), sized(2)), does: retry},
}

func notElastic(s *plan.Snapshot) {
	s.Jobs[0].SetAnnotations(nil)
	s.Workloads[0].Annotations = nil
}

// TestGrowth: what the job's copy becomes.
func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		when plan.Snapshot
		want int64
		by   string
	}{
		"grows by the next slice":                {snap(grown), 5, "next"},
		"to its size, though the job wants more": {snap(growing, wants(9), nextOffered("w1"), nextAdmitted("w1"), followed("w1")), 5, "next"},
		"shrinks by the same":                    {snap(elastic, runsElastic("w1"), wants(2), sized(2), followed("w1")), 2, "wl"},
	} {
		t.Run(name, func(t *testing.T) {
			job := c.when.Workers[0].Jobs[0]
			got, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
			if got != c.want || kinds.LinkedTo(job) != c.by {
				t.Errorf("the copy has %d pods by slice %q, want %d by %q", got, kinds.LinkedTo(job), c.want, c.by)
			}
			if job.GetLabels()[kueue.MultiKueueOriginLabel] == "" || !kinds.Ours(job) {
				t.Errorf("the copy lost its marks: labels %v, annotations %v", job.GetLabels(), job.GetAnnotations())
			}
			edits := slices.ContainsFunc(plan.Decide(c.when).Workers["w1"], func(a plan.Action) bool { return strings.HasPrefix(a.String(), "edit") })
			if edits {
				t.Error("the copy is edited again")
			}
		})
	}
}
