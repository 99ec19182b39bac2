package plan

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

var adopt = Rule{
	Name: "Adopt",
	Doc:  "A worker holds what MultiKueue made for this very job, with our origin: it gets Ferry's marks, in place, so that nothing restarts, and is Ferry's from then on. What was neither claimed nor nominated counts as of an earlier reservation, and goes before anybody else is asked.",
	decide: func(v *view, p *Plan) bool {
		from := v.adoptOnThose(p, true)
		if len(from) == 0 && v.hostIsSeen() {
			from = v.adoptOnThose(p, false)
		}
		if len(from) == 0 {
			return false
		}
		p.Because = reason.Adopting(strings.Join(from, ", "))
		return true
	},
}

// adoptOnThose adopts on the workers that are assigned to the job, or on the others. These
// come later: two names may lead to one cluster, and the right one is to have the copies.
func (v *view) adoptOnThose(p *Plan, assigned bool) (names []string) {
	for i := range v.Workers {
		if w := &v.Workers[i]; v.isAssigned(w.Name) == assigned && v.adoptOn(p, w, assigned) {
			names = append(names, w.Name)
		}
	}
	return names
}

func (v *view) hostIsSeen() bool {
	w := v.find(v.claim())
	return v.claim() == "" || w != nil && w.Reachable
}

// adoptOn marks what was made for the job on a worker, and tells whether there is any.
func (v *view) adoptOn(p *Plan, w *Worker, present bool) bool {
	if !w.Reachable || v.Kind == nil || len(v.Jobs) == 0 || len(v.Workloads) == 0 {
		return false
	}
	found := slices.Concat(v.adoptWorkloads(w, present), v.adoptJobs(w, present))
	p.worker(w.Name, found...)
	return len(found) > 0
}

func (v *view) adoptWorkloads(w *Worker, present bool) (found []Action) {
	for _, c := range w.Unmarked.Workloads {
		if wl := byName(v.known, c.Name); wl != nil {
			m := kinds.Marks{Origin: v.Policy.Origin, Worker: w.Name}
			if present && canWin(c) {
				m.Reservation = Reservation(wl)
			}
			found = append(found, Adopt{Copy: c, Want: kinds.AdoptedWorkload(c, wl, v.Ref, m)})
		}
	}
	return found
}

func (v *view) adoptJobs(w *Worker, present bool) (found []Action) {
	for _, c := range w.Unmarked.Jobs {
		if on := named(v.Jobs, c.GetName()); on != nil && v.Kind.MadeFor(c, on, v.known) {
			m := kinds.Marks{Origin: v.Policy.Origin, Worker: w.Name}
			if present {
				m.Reservation = v.reservation()
			}
			found = append(found, Adopt{Copy: c, Want: v.Kind.Adopted(c, on, m)})
		}
	}
	return found
}

// isAssigned tells whether the manager's Workloads say that this worker runs the job, or was asked to.
func (v *view) isAssigned(worker string) bool {
	if claim := v.claim(); claim != "" {
		return claim == worker
	}
	return len(v.Workloads) > 0 && v.isNominee(worker)
}

// canWin: MultiKueue can hold preemption on the workers until it opens a gate, one
// worker after the other, which nobody does any more.
func canWin(c *kueue.Workload) bool {
	return len(c.Spec.PreemptionGates) == 0 || isTrue(c, kueue.WorkloadAdmitted)
}

// podLooks is how often the pods of an adopted set are looked for while one is missing.
const podLooks = 5 * time.Second

// markPods finds the pods of an adopted set. They have no marks, so that no cache shows them.
func (v *view) markPods(p *Plan, w *Worker) {
	if !v.Kind.Pods || len(w.Jobs) == 0 || !isThere(w.Jobs[0]) || v.Kind.MarksPods(w.Jobs[0]) {
		return
	}
	missing := func(pod *unstructured.Unstructured) bool { return isThere(pod) && named(w.Pods, pod.GetName()) == nil }
	if slices.ContainsFunc(v.Pods, missing) {
		p.worker(w.Name, MarkPods{Set: w.Jobs[0]})
		p.again(podLooks)
	}
}
