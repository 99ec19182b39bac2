package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestElasticProperties holds Decide to its promises for jobs of any slices in any state.
func TestElasticProperties(t *testing.T) {
	edits, total := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "seed")))}
		for range 50 {
			s := d.elastic()
			p := decidePurely(t, s)
			total++
			broken := []string{deletes(s, p), editsOnce(p), persists(s, p), rests(s, p), permuted(t, s, p)}
			for name, list := range p.Workers {
				for _, a := range list {
					switch act := a.(type) {
					case plan.EditJob:
						edits++
						broken = append(broken, hasRoom(s, name, act.Want))
					case plan.CreateJob:
						broken = append(broken, hasRoom(s, name, act.Copy))
					}
				}
				broken = append(broken, keepsQuota(s, workerOf(s, name), list))
			}
			for _, why := range broken {
				if why != "" {
					t.Fatalf("%s: %s", show(p), why)
				}
			}
		}
	})
	if edits == 0 && total >= 5000 && !t.Failed() {
		t.Error("no job was ever resized: the random Snapshots are too tame")
	}
}

// hasRoom: a job has no more pods than the admitted slice that it runs by, and runs where its claim is.
func hasRoom(s plan.Snapshot, worker string, job *unstructured.Unstructured) string {
	c, wl := named(workerOf(s, worker).Workloads, kinds.LinkedTo(job)), named(s.Workloads, kinds.LinkedTo(job))
	if c == nil || wl == nil {
		return "the job is to run by a slice that is not there"
	}
	pods, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
	wasOfIt := len(workerOf(s, worker).Jobs) > 0 && kinds.LinkedTo(workerOf(s, worker).Jobs[0]) == c.Name
	switch {
	case wl.Status.ClusterName == nil || *wl.Status.ClusterName != worker:
		return "the job is to run where it has no claim"
	case pods > int64(c.Spec.PodSets[0].Count):
		return fmt.Sprintf("the job is to have %d pods, its slice's copy %d", pods, c.Spec.PodSets[0].Count)
	case !wasOfIt && !meta.IsStatusConditionTrue(c.Status.Conditions, kueue.WorkloadAdmitted):
		return "the job is to run by a slice that is not admitted"
	}
	return ""
}

// keepsQuota: a job that stays with its claim keeps the Workload that it runs by,
// unless that is of an earlier reservation. Kueue would stop it.
func keepsQuota(s plan.Snapshot, w plan.Worker, list []plan.Action) string {
	if len(w.Jobs) == 0 {
		return ""
	}
	c, wl := named(w.Workloads, kinds.LinkedTo(w.Jobs[0])), named(s.Workloads, kinds.LinkedTo(w.Jobs[0]))
	if c == nil || wl == nil || wl.Status.ClusterName == nil || *wl.Status.ClusterName != w.Name || c.Annotations[kinds.ReservationAnnotation] != plan.Reservation(wl) {
		return ""
	}
	gone := map[string]bool{}
	for _, a := range list {
		if d, is := a.(plan.Delete); is {
			gone[d.GVK.Kind+"/"+d.Key.Name] = true
		}
	}
	if link := kinds.LinkedTo(w.Jobs[0]); gone["Workload/"+link] && !gone["Job/train"] {
		return "removes slice " + link + " from under the job"
	}
	return ""
}

func named(wls []*kueue.Workload, name string) *kueue.Workload {
	for _, wl := range wls {
		if wl.Name == name {
			return wl
		}
	}
	return nil
}

// elastic draws a job of one to three slices, mostly in a row as Kueue makes them, and two workers.
func (d *dice) elastic() plan.Snapshot {
	s := snap(elastic)
	claimant := oneOf(d, "", "w1", "w1", "w1", "w2")
	for i := range 1 + d.IntN(3) {
		name := fmt.Sprintf("wl%d", i)
		if i == 0 {
			s.Workloads[0].Name, s.Workloads[0].UID = name, "wl0-uid"
		} else {
			next := s.Workloads[i-1].DeepCopy()
			next.Name, next.UID = name, d.uid()
			next.Annotations = map[string]string{"kueue.x-k8s.io/elastic-job": "true", "kueue.x-k8s.io/workload-slice-replacement-for": "team-a/" + s.Workloads[i-1].Name}
			next.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(oneOf(d, i, i, 0)) * time.Second))
			if d.in10(8) {
				replaced(s.Workloads[i-1])
			}
			s.Workloads = append(s.Workloads, next)
		}
		d.slice(s.Workloads[i], claimant)
	}
	wants(int64(d.IntN(9)))(&s)
	s.Host, s.Workers = claimant, nil
	for _, name := range []string{"w1", "w2"} {
		s.Workers = append(s.Workers, d.elasticWorker(&s, name))
	}
	for _, wl := range s.Workloads {
		if d.in10(2) {
			wl.Spec.PodSets[0].Count += int32(oneOf(d, -1, -1, 1))
		}
	}
	return s
}

func (d *dice) slice(wl *kueue.Workload, claimant string) {
	wl.Spec.PodSets[0].Count = int32(1 + d.IntN(9))
	wl.Status.ClusterName = nil
	our := &wl.Status.AdmissionChecks[0]
	our.LastTransitionTime.Time = now.Add(-d.seconds(120))
	our.State = oneOf(d, kueue.CheckStatePending, kueue.CheckStateReady, kueue.CheckStateReady, kueue.CheckStatePending, kueue.CheckStateRetry)
	switch {
	case d.in10(2):
		noReservation()(&plan.Snapshot{Workloads: []*kueue.Workload{wl}})
	case claimant != "" && d.in10(9):
		wl.Status.ClusterName = &claimant
	default:
		wl.Status.NominatedClusterNames = []string{"w1", "w2"}
	}
	if d.in10(1) {
		preempted(wl)
	}
}

func (d *dice) elasticWorker(s *plan.Snapshot, name string) plan.Worker {
	w := plan.Worker{Name: name, InConfig: d.in10(9), LostSince: now.Add(-d.seconds(1800)), Reachable: d.in10(9), Serves: d.in10(9)}
	if !w.Reachable {
		return w
	}
	if d.in10(1) {
		refuses(s, &w)
	}
	for _, wl := range s.Workloads {
		if d.in10(7) {
			c := d.copy(s, wl, false)
			if d.in10(3) {
				replaced(c)
			}
			w.Workloads = append(w.Workloads, c)
		}
	}
	if d.in10(7) {
		wl := s.Workloads[d.IntN(len(s.Workloads))]
		job := jobKind.Project(s.Jobs[0], wl, kinds.Marks{Origin: "m", Reservation: d.reservation(wl)})
		job.SetUID(d.uid())
		w.Jobs = one(job)
		if c := named(w.Workloads, wl.Name); c != nil && d.in10(7) {
			c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, jobKind.GVK)}
		}
	}
	return w
}
