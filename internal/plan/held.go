package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// heldLooks is how often somebody looks whether what holds up a job is still there.
const heldLooks = time.Minute

var held = Rule{
	Name: "Held",
	Doc:  "The worker that holds the claim shows nothing of ours, but a copy of the job or of its Workload with another multikueue origin: this very job may run there. So nobody else is asked to run it, until that is gone, or Ferry runs with that origin; the check and an event say so.",
	decide: func(v *view, p *Plan) bool {
		w := v.emptyHost()
		if w == nil {
			return false
		}
		origin := v.heldBy(w)
		if origin == "" || origin == v.Policy.Origin {
			return false
		}
		v.removeFromAllBut(p, w.Name)
		v.hold(p, w, origin)
		return true
	},
}

var unsure = Rule{
	Name: "Unsure",
	Doc:  "The worker that holds the claim does not show the copy of the Workload, or that of a job that was placed: before it counts as gone, the worker itself is asked, as a watch may be silent. What is found there is decided on.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable || w.Blind || len(v.replaced[w.Name]) > 0 {
			return false
		}
		var asks LookUp
		switch {
		case v.missesWorkload(w):
			if !w.Sought.At.IsZero() && w.Sought.Origin == "" {
				return false
			}
			wl := v.Workloads[0]
			asks = LookUp{GVK: kueue.SchemeGroupVersion.WithKind("Workload"), Key: types.NamespacedName{Namespace: wl.Namespace, Name: wl.Name}, Origin: v.Policy.Origin}
		case v.missesJob(w) && w.JobGone.IsZero():
			asks = LookUp{GVK: v.Kind.GVK, Key: v.Ref.Key(), Origin: v.Policy.Origin}
		default:
			return false
		}
		v.removeFromAllBut(p, w.Name)
		p.Because = reason.LooksUp(w.Name)
		if w.Sought.At.IsZero() || asks.GVK.Kind != "Workload" {
			p.worker(w.Name, asks)
		} else {
			p.again(heldLooks) // the cache is yet to show it
		}
		return true
	},
}

// isSingle: the job is one object with one Workload at a time, neither of which goes while the job is there.
func (v *view) isSingle() bool {
	return v.Kind != nil && !v.many() && !v.Kind.Group && !v.elastic
}

// missesWorkload tells whether the worker with the claim shows no copy of the Workload.
func (v *view) missesWorkload(w *Worker) bool {
	return len(w.Workloads) == 0 && len(v.stale[w.Name]) == 0 && (len(w.Jobs) == 0 || v.isSingle())
}

// missesJob tells whether the worker with the claim shows no copy of a job that was placed.
func (v *view) missesJob(w *Worker) bool {
	ready := func(wl *kueue.Workload) bool { return v.checkIs(wl, kueue.CheckStateReady) }
	return v.isSingle() && len(w.Jobs) == 0 && len(v.stale[w.Name]) == 0 && !w.Foreign && v.any(ready)
}

// emptyHost is the worker that holds the claim, if it could show the job and does not.
func (v *view) emptyHost() *Worker {
	w := v.find(v.claim())
	if w == nil || !w.Reachable || w.Blind || v.holds(w) || len(v.replaced[w.Name]) > 0 {
		return nil
	}
	return w
}

// heldBy is the origin of what may be this very job on a worker, though it is not ours; empty when there is none.
func (v *view) heldBy(w *Worker) string {
	if w.Sought.Origin != "" {
		return w.Sought.Origin
	}
	h := w.Holder
	for _, job := range v.Jobs {
		if h.Origin != "" && h.OriginUID == string(job.GetUID()) {
			return h.Origin
		}
	}
	if h.Origin == "" || h.OriginUID != "" || byName(v.known, h.Workload) == nil {
		return ""
	}
	return h.Origin
}

// isHeldOn tells whether what may be this very job holds it up on a worker. Only one that can have the job is believed.
func (v *view) isHeldOn(w *Worker) bool {
	return w.Reachable && v.mayHave(w) && v.heldBy(w) != ""
}

// hold leaves everything as it is, and says so until it is resolved.
func (v *view) hold(p *Plan, w *Worker, origin string) {
	p.Held, p.Because = true, reason.Held(w.Name, origin)
	p.again(heldLooks)
	for _, wl := range v.Workloads {
		if c := v.check(wl); c != nil && c.Message != p.Because && !isTrue(wl, kueue.WorkloadFinished) {
			p.manager(SetCheck{Workload: wl, Check: v.Check, State: c.State, Message: p.Because, Event: true, Warning: true})
		}
	}
}

// endHold takes back what hold said, once the job is seen to run.
func (v *view) endHold(p *Plan, w *Worker) {
	for _, wl := range v.Workloads {
		if c := v.check(wl); c != nil && c.State == kueue.CheckStateReady && reason.IsHeld(c.Message) {
			p.manager(SetCheck{Workload: wl, Check: v.Check, State: c.State, Message: reason.Admitted(w.Name)})
		}
	}
}
