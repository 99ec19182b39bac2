package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

var now = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

var (
	jobKind = kinds.NewTable([]string{"batch/job"}).Rows()[0]
	jobRef  = kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}
)

const ourCheck = kueue.AdmissionCheckReference("ferry")

// with changes a Snapshot. Changes apply in order: those of the manager come
// before the copies that are made from it.
type with = func(*plan.Snapshot)

// snap is a job whose Workload has quota and waits for our check, and three
// healthy workers that have nothing of it; then the changes.
func snap(changes ...with) plan.Snapshot {
	s := plan.Snapshot{
		Now: now, Ref: jobRef, Kind: jobKind, Jobs: []*unstructured.Unstructured{newJob()}, Workloads: []*kueue.Workload{newWorkload("wl")}, Check: ourCheck,
		Policy: plan.Policy{Origin: "m", Placement: placement.AllAtOnce{}, WorkerLostTimeout: 15 * time.Minute, PlaceTimeout: time.Minute, FirstConnect: 90 * time.Second},
	}
	for _, name := range []string{"w1", "w2", "w3"} {
		s.Workers = append(s.Workers, plan.Worker{Name: name, InConfig: true, Reachable: true, Serves: true})
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func newJob() *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"managedBy": kueue.MultiKueueControllerName, "suspend": true, "parallelism": int64(1)},
	}}
	job.SetGroupVersionKind(jobKind.GVK)
	job.SetNamespace(jobRef.Namespace)
	job.SetName(jobRef.Name)
	job.SetUID("job-uid")
	job.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Hour)))
	return job
}

func newWorkload(name string) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: jobRef.Namespace, Name: name, UID: types.UID(name + "-uid")}}
	wl.Spec.QueueName = "team"
	wl.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
	setCondition(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", time.Minute)
	wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{
		{Name: ourCheck, State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))},
	}
	return wl
}

// setCondition sets a condition as of some time ago.
func setCondition(wl *kueue.Workload, condition string, is bool, reason string, ago time.Duration) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	meta.RemoveStatusCondition(&wl.Status.Conditions, condition)
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: "because " + reason, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
	})
}

// manager changes every Workload on the manager.
func manager(change func(*kueue.Workload)) with {
	return func(s *plan.Snapshot) {
		for _, wl := range s.Workloads {
			change(wl)
		}
	}
}

func on(worker string, change func(*plan.Snapshot, *plan.Worker)) with {
	return func(s *plan.Snapshot) {
		i := slices.IndexFunc(s.Workers, func(w plan.Worker) bool { return w.Name == worker })
		if i < 0 {
			panic("no worker " + worker)
		}
		change(s, &s.Workers[i])
	}
}

func copies(worker string, change func(*kueue.Workload)) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		for _, c := range w.Workloads {
			change(c)
		}
	})
}

func managerCondition(condition string) with {
	return manager(func(wl *kueue.Workload) { setCondition(wl, condition, true, "Test", time.Second) })
}

func noReservation() with {
	return manager(func(wl *kueue.Workload) {
		meta.RemoveStatusCondition(&wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		wl.Status.Admission = nil
	})
}

func check(state kueue.CheckState) with {
	return manager(func(wl *kueue.Workload) { wl.Status.AdmissionChecks[0].State = state })
}

func otherCheck(state kueue.CheckState) with {
	return manager(func(wl *kueue.Workload) {
		wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, kueue.AdmissionCheckState{Name: "budget", State: state})
	})
}

func nominated(workers ...string) with {
	return manager(func(wl *kueue.Workload) { wl.Status.NominatedClusterNames = workers })
}

func claim(worker string) with {
	return func(s *plan.Snapshot) {
		s.ClaimedSince = now.Add(-10 * time.Second)
		manager(func(wl *kueue.Workload) { wl.Status.ClusterName = &worker })(s)
	}
}

// offered puts copies of the Workloads on workers.
func offered(workers ...string) with {
	return func(s *plan.Snapshot) {
		for _, name := range workers {
			on(name, func(s *plan.Snapshot, w *plan.Worker) {
				for _, wl := range s.Workloads {
					c := kinds.ProjectWorkload(wl, s.Ref, kinds.Marks{Origin: "m", Reservation: plan.Reservation(wl)})
					c.UID = types.UID(name + "-" + wl.Name)
					w.Workloads = append(w.Workloads, c)
				}
			})(s)
		}
	}
}

// placed puts a copy of the job on a worker.
func placed(worker string) with {
	return on(worker, func(s *plan.Snapshot, w *plan.Worker) {
		wl := s.Workloads[0]
		w.Jobs = []*unstructured.Unstructured{s.Kind.Project(s.Jobs[0], wl, kinds.Marks{Origin: "m", Reservation: plan.Reservation(wl)})}
		w.Jobs[0].SetUID(types.UID(worker + "-job"))
	})
}

// admitted makes Kueue on the worker admit the copies, some time ago.
func admitted(worker string, ago time.Duration) with {
	return copies(worker, func(c *kueue.Workload) { setCondition(c, kueue.WorkloadAdmitted, true, "Admitted", ago) })
}

func copyCondition(worker, condition, reason string) with {
	return copies(worker, func(c *kueue.Workload) { setCondition(c, condition, true, reason, 10*time.Second) })
}

// jobStatus sets the status of a job's copy.
func jobStatus(worker string, status map[string]any) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		w.Jobs[0].Object["status"] = status
		w.Jobs[0].Object["spec"].(map[string]any)["suspend"] = false
	})
}

func managerJob(change func(*unstructured.Unstructured)) with {
	return func(s *plan.Snapshot) { change(s.Jobs[0]) }
}

func lost(worker string, ago time.Duration) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		*w = plan.Worker{Name: w.Name, InConfig: w.InConfig, LostSince: now.Add(-ago)}
	})
}

// blind: the worker can be reached, but not be asked for jobs, since some time ago.
func blind(worker string, ago time.Duration) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) {
		w.Jobs, w.Serves, w.Blind, w.Why, w.LostSince = nil, false, true, "its objects are still being read", now.Add(-ago)
	})
}

// withdrawn: the worker is to be given up.
func withdrawn(worker string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Leaving = true })
}

// unread: this process has not been connected to the worker yet.
func unread(worker string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Unread = true })
}

func lostTimeout(d time.Duration) with {
	return func(s *plan.Snapshot) { s.Policy.WorkerLostTimeout = d }
}

func retain(d time.Duration) with {
	return func(s *plan.Snapshot) { s.Policy.Retain = d }
}

func outOfConfig(worker string, ago time.Duration) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.InConfig, w.LostSince = false, now.Add(-ago) })
}

func foreign(worker string) with {
	return on(worker, func(_ *plan.Snapshot, w *plan.Worker) { w.Foreign = true })
}

// evictedSince makes everything on the workers a thing of an earlier reservation.
func evictedSince() with {
	return manager(func(wl *kueue.Workload) {
		if wl.Status.SchedulingStats == nil {
			wl.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Reason: "Preempted"}}}
		}
		wl.Status.SchedulingStats.Evictions[0].Count++
	})
}

// claimedBy is the usual state of a job that runs on a worker.
func claimedBy(worker string) with {
	return all(claim(worker), check(kueue.CheckStateReady), offered(worker), admitted(worker, time.Minute), placed(worker))
}

func all(changes ...with) with {
	return func(s *plan.Snapshot) {
		for _, change := range changes {
			change(s)
		}
	}
}

// show writes a plan on one line: the rule, then who does what.
func show(p plan.Plan) string {
	parts := []string{p.Rule}
	if len(p.Manager) > 0 {
		parts = append(parts, "manager: "+actions(p.Manager))
	}
	var names []string
	for name := range p.Workers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, name+": "+actions(p.Workers[name]))
	}
	if p.Again > 0 {
		parts = append(parts, fmt.Sprintf("again in %s", p.Again))
	}
	return strings.Join(parts, " | ")
}

func actions(list []plan.Action) string {
	var parts []string
	for _, a := range list {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, ", ")
}

// kept: the manager kept less than was asked of the last status.
func kept(asked, kept map[string]any) with {
	return func(s *plan.Snapshot) { s.Pruned = map[types.UID]plan.Pruned{"job-uid": {Asked: asked, Kept: kept}} }
}

func evictedJustNow(c *kueue.Workload) {
	setCondition(c, kueue.WorkloadEvicted, true, "AdmissionCheck", time.Second)
}

func evictedLongAgo(c *kueue.Workload) {
	setCondition(c, kueue.WorkloadEvicted, true, "AdmissionCheck", time.Minute)
}

// markedByAnotherBuild: the hash is of Go types, so another build of Ferry gives another one.
func markedByAnotherBuild(c *kueue.Workload) {
	c.Annotations[kinds.SpecHashAnnotation] = "0123456789abcdef"
}
