package plan_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestProperties holds Decide to its promises on random Snapshots.
func TestProperties(t *testing.T) {
	seen, total := map[string]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{Rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "seed")))}
		for range 120 {
			s := d.snapshot()
			p := decidePurely(t, s)
			seen[p.Rule]++
			total++
			if p.Rule == "" || p.Because == "" || p.Again < 0 {
				t.Fatalf("the plan is not complete: %+v", p)
			}
			for _, broken := range []string{creates(s, p), deletes(s, p), editsOnce(p), persists(s, p), rests(s, p), permuted(t, s, p)} {
				if broken != "" {
					t.Fatalf("%s: %s", show(p), broken)
				}
			}
		}
	})
	t.Logf("rules: %v", seen)
	const enough = 12000 // a replay of one seed is not
	for _, r := range plan.Rules() {
		if seen[r.Name] == 0 && total >= enough && !t.Failed() {
			t.Errorf("%s never answered: the random Snapshots are too tame", r.Name)
		}
	}
}

// decidePurely: the Snapshot stays as it is, and gives the same Plan again.
func decidePurely(t *rapid.T, s plan.Snapshot) plan.Plan {
	before := clone(s)
	p := plan.Decide(s)
	if !reflect.DeepEqual(s, before) {
		t.Fatalf("%s changed the Snapshot", p.Rule)
	}
	if !reflect.DeepEqual(p, plan.Decide(before)) {
		t.Fatalf("%s: the same Snapshot gave another Plan", p.Rule)
	}
	return p
}

// creates: copies go only where persisted state allows it.
func creates(s plan.Snapshot, p plan.Plan) string {
	jobs := 0
	for name, list := range p.Workers {
		w := workerOf(s, name)
		for _, a := range list {
			switch act := a.(type) {
			case plan.CreateJob:
				jobs++
				if broken := mayPlace(s, w); broken != "" {
					return broken
				}
			case plan.CreateWorkload:
				if broken := mayOffer(s, w, act); broken != "" {
					return broken
				}
			}
		}
	}
	if jobs > 1 {
		return "the job is created on several workers"
	}
	if jobs > 0 && slices.ContainsFunc(p.Manager, func(a plan.Action) bool { return !onlyInforms(a) }) {
		return "the job is created while something is still to be persisted"
	}
	return ""
}

// rests: a worker that refused something of the job is asked for nothing new before it may be.
func rests(s plan.Snapshot, p plan.Plan) string {
	for name, list := range p.Workers {
		for _, a := range list {
			switch a.(type) {
			case plan.CreateJob, plan.CreateWorkload:
				if workerOf(s, name).AskAgain.After(s.Now) {
					return a.String() + " on a worker that refused"
				}
			}
		}
	}
	return ""
}

// onlyInforms: a pending check's message is nothing that placing rests on.
func onlyInforms(a plan.Action) bool {
	set, ok := a.(plan.SetCheck)
	return ok && set.State == kueue.CheckStatePending
}

func mayPlace(s plan.Snapshot, w plan.Worker) string {
	if !w.Reachable {
		return "a job for a worker out of reach"
	}
	for _, wl := range s.Workloads {
		if wl.Status.ClusterName == nil || *wl.Status.ClusterName != w.Name {
			return "a job on a worker without a persisted claim of " + wl.Name
		}
		i := slices.IndexFunc(w.Workloads, func(c *kueue.Workload) bool { return c.Name == wl.Name })
		if i < 0 || !meta.IsStatusConditionTrue(w.Workloads[i].Status.Conditions, kueue.WorkloadAdmitted) {
			return "a job without an admitted copy of " + wl.Name
		}
		if c := w.Workloads[i]; c.Annotations[kinds.ReservationAnnotation] != plan.Reservation(wl) {
			return "a job on the strength of an earlier reservation"
		}
	}
	return stopped(s)
}

func mayOffer(s plan.Snapshot, w plan.Worker, act plan.CreateWorkload) string {
	for _, wl := range s.Workloads {
		if !slices.Contains(wl.Status.NominatedClusterNames, w.Name) && wl.Name == act.Copy.Name {
			return "a copy of " + wl.Name + " on a worker that is not nominated"
		}
		for _, c := range wl.Status.AdmissionChecks {
			if c.Name != s.Check && c.State != kueue.CheckStateReady {
				return "a copy before other checks are ready"
			}
		}
		if wl.Status.ClusterName != nil {
			return "a copy of a claimed job"
		}
	}
	if !w.Reachable || !w.InConfig || !w.Serves || w.Foreign {
		return "a copy for a worker that cannot take it"
	}
	return stopped(s)
}

// stopped says why nothing of the job may be made.
func stopped(s plan.Snapshot) string {
	if len(s.Jobs) == 0 || s.Jobs[0].GetDeletionTimestamp() != nil {
		return "the job is gone"
	}
	for _, wl := range s.Workloads {
		if meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted) {
			return wl.Name + " is evicted"
		}
		if plan.Reservation(wl) == "" {
			return wl.Name + " has no quota"
		}
	}
	return ""
}

// deletes: only what is seen on the worker, by its UID, and not what is on its way out.
func deletes(s plan.Snapshot, p plan.Plan) string {
	for name, list := range p.Workers {
		w := workerOf(s, name)
		if !w.Reachable && len(list) > 0 {
			return "actions for a worker out of reach"
		}
		present := map[types.UID]bool{}
		for _, c := range w.Workloads {
			present[c.UID] = c.DeletionTimestamp.IsZero()
		}
		for _, job := range w.Jobs {
			present[job.GetUID()] = job.GetDeletionTimestamp() == nil
		}
		for _, a := range list {
			if d, isDelete := a.(plan.Delete); isDelete {
				if d.UID == "" || !present[d.UID] {
					return "deletes what is not there: " + d.String()
				}
				delete(present, d.UID)
			}
		}
	}
	return ""
}

// editsOnce: a copy is written once. A second edit, decided on the same version, would be refused.
func editsOnce(p plan.Plan) string {
	for _, list := range p.Workers {
		edited := map[string]bool{}
		for _, a := range list {
			act, isEdit := a.(plan.EditJob)
			if isEdit && edited[act.Copy.GetName()] {
				return "several edits of " + act.Copy.GetName()
			}
			if isEdit {
				edited[act.Copy.GetName()] = true
			}
		}
	}
	return ""
}

// persists: the manager's Workload is written once, and claims rest on nominations.
func persists(s plan.Snapshot, p plan.Plan) string {
	written := map[string]bool{}
	for _, a := range p.Manager {
		wl := ""
		switch act := a.(type) {
		case plan.Nominate:
			wl = act.Workload.Name
		case plan.SetCheck:
			wl = act.Workload.Name
		case plan.Finish:
			wl = act.Workload.Name
		case plan.Claim:
			wl = act.Workload.Name
			if !slices.Contains(act.Workload.Status.NominatedClusterNames, act.Worker) {
				return "claims for a worker that is not nominated"
			}
		case plan.MirrorStatus, plan.Warn:
			continue
		default:
			return fmt.Sprintf("%s is no action for the manager", a)
		}
		if written[wl] {
			return wl + " is written twice: the second write would conflict"
		}
		written[wl] = true
	}
	return ""
}

// permuted: the workers' order matters to the placement only.
func permuted(t *rapid.T, s plan.Snapshot, p plan.Plan) string {
	if len(s.Workers) < 2 {
		return ""
	}
	other := clone(s)
	other.Workers = rapid.Permutation(other.Workers).Draw(t, "order")
	q := plan.Decide(other)
	if p.Rule != q.Rule || p.Again != q.Again {
		return fmt.Sprintf("another order of the workers gives %s", show(q))
	}
	for _, w := range s.Workers {
		if actions(p.Workers[w.Name]) != actions(q.Workers[w.Name]) {
			return fmt.Sprintf("another order of the workers gives %s", show(q))
		}
	}
	if p.Rule != "Nominate" && actions(p.Manager) != actions(q.Manager) {
		return fmt.Sprintf("another order of the workers gives %s", show(q))
	}
	return ""
}

func workerOf(s plan.Snapshot, name string) plan.Worker {
	i := slices.IndexFunc(s.Workers, func(w plan.Worker) bool { return w.Name == name })
	if i < 0 {
		panic("no worker " + name)
	}
	return s.Workers[i]
}

func clone(s plan.Snapshot) plan.Snapshot {
	s.Jobs = slices.Clone(s.Jobs)
	for i := range s.Jobs {
		s.Jobs[i] = s.Jobs[i].DeepCopy()
	}
	s.Workloads = cloneAll(s.Workloads)
	s.Workers = slices.Clone(s.Workers)
	for i := range s.Workers {
		w := &s.Workers[i]
		w.Workloads = cloneAll(w.Workloads)
		w.Jobs = slices.Clone(w.Jobs)
		for i := range w.Jobs {
			w.Jobs[i] = w.Jobs[i].DeepCopy()
		}
		w.Unmarked.Workloads = cloneAll(w.Unmarked.Workloads)
		w.Unmarked.Jobs = slices.Clone(w.Unmarked.Jobs)
		for i := range w.Unmarked.Jobs {
			w.Unmarked.Jobs[i] = w.Unmarked.Jobs[i].DeepCopy()
		}
	}
	return s
}

func cloneAll(wls []*kueue.Workload) []*kueue.Workload {
	if wls == nil {
		return nil
	}
	out := make([]*kueue.Workload, 0, len(wls))
	for _, wl := range wls {
		out = append(out, wl.DeepCopy())
	}
	return out
}

// TestReservationChangesWithEachEviction: also with one that nobody saw, within the same second.
func TestReservationChangesWithEachEviction(t *testing.T) {
	s := snap()
	seen := map[string]bool{}
	for range 5 {
		id := plan.Reservation(s.Workloads[0])
		if id == "" || seen[id] {
			t.Fatalf("reservation %q is not new", id)
		}
		seen[id] = true
		evictedSince()(&s)
	}
	noReservation()(&s)
	if id := plan.Reservation(s.Workloads[0]); id != "" {
		t.Errorf("without quota the reservation is %q", id)
	}
}
