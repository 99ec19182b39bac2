package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// say puts a sentence into the pending check's message, once it has been true for a while.
func (v *view) say(p *Plan, message string) {
	p.Because = reason.Fit(message)
	for _, wl := range v.Workloads {
		v.sayOf(p, wl, message)
	}
}

// sayOf says it of one Workload.
func (v *view) sayOf(p *Plan, wl *kueue.Workload, message string) {
	message = reason.Fit(message)
	c := v.check(wl)
	if c == nil || c.State != kueue.CheckStatePending || c.Message == message {
		return
	}
	if left := c.LastTransitionTime.Add(quiet).Sub(v.Now); left > 0 {
		p.again(left)
		return
	}
	p.manager(SetCheck{Workload: wl, Check: v.Check, State: kueue.CheckStatePending, Message: message, Informs: true})
}

// sayStuck says which workers do not let go of the job, and why.
func (v *view) sayStuck(p *Plan) {
	var stuck []string
	for i := range v.Workers {
		if w := &v.Workers[i]; w.Trouble != "" && w.Reachable && v.holds(w) {
			stuck = append(stuck, reason.WithTrouble(w.Name, w.Trouble))
		}
	}
	if len(stuck) > 0 && len(p.Manager) == 0 {
		v.say(p, reason.WaitsForCleanup(stuck))
	}
}

// retry gives the job back to Kueue on the manager, which evicts and requeues it.
func (v *view) retry(p *Plan, message string, warning bool) {
	v.settle(p, kueue.CheckStateRetry, message, warning)
}

// retryWithRest gives the job back because of what happened on its worker, which
// is not asked again at once.
func (v *view) retryWithRest(p *Plan, w *Worker, message string, rest Rest) {
	v.retry(p, message, true)
	v.giveRest(p, w, rest)
}

// giveRest gives the worker a rest with the first check that the plan writes: one, however many Workloads the job has.
func (v *view) giveRest(p *Plan, w *Worker, rest Rest) {
	rest.Worker = w.Name
	for i, a := range p.Manager {
		if set, ok := a.(SetCheck); ok {
			set.Rest = &rest
			p.Manager[i] = set
			return
		}
	}
}

// settle moves the check of every unfinished Workload to a state.
func (v *view) settle(p *Plan, state kueue.CheckState, message string, warning bool) {
	p.Because = reason.Fit(message)
	for _, wl := range v.Workloads {
		v.settleOne(p, wl, state, message, warning)
	}
}

func (v *view) settleOne(p *Plan, wl *kueue.Workload, state kueue.CheckState, message string, warning bool) {
	message = reason.Fit(message)
	p.Because = message
	c := v.check(wl)
	switch {
	case c == nil || isTrue(wl, kueue.WorkloadFinished):
	case c.State != state:
		p.manager(SetCheck{Workload: wl, Check: v.Check, State: state, Message: message, Event: true, Warning: warning})
	case state == kueue.CheckStateReady && DelaysTopology(wl):
		p.manager(SetCheck{Workload: wl, Check: v.Check, State: state, Message: c.Message})
	}
}

// DelaysTopology tells whether Kueue on the manager waits to hear that a topology was found: nodes are chosen by the
// worker, and which they are means nothing here. Kueue admits such a Workload once no request is Pending.
func DelaysTopology(wl *kueue.Workload) bool {
	return wl.Status.Admission != nil && slices.ContainsFunc(wl.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		return a.DelayedTopologyRequest != nil && *a.DelayedTopologyRequest == kueue.DelayedTopologyRequestStatePending
	})
}

// mirrorAll brings everything that the worker shows of the job to the manager.
func (v *view) mirrorAll(p *Plan, w *Worker) {
	v.mirrorJobs(p, w.Jobs)
	v.mirrorPods(p, w)
}

// mirrorJobs brings the status of the job's copy, or copies, to the manager, and tells whether that changes anything.
func (v *view) mirrorJobs(p *Plan, copies []*unstructured.Unstructured) (changed bool) {
	for _, c := range copies {
		if on := named(v.Jobs, c.GetName()); on != nil && v.mirror(p, v.Kind, on, c) {
			changed = true
		}
	}
	return changed
}

// mirror brings the status of one object on the worker to its original, if that changes anything.
func (v *view) mirror(p *Plan, kind *kinds.Kind, on, worker *unstructured.Unstructured) (changed bool) {
	if kind == nil || !kind.Mirrored() {
		return false
	}
	status := kind.Reflect(on, worker, v.Now)
	if kinds.SameStatus(on, status) || v.isPruned(on, status) {
		return false
	}
	if urgent := isUrgent(kind, worker); !v.isPutOff(p, on, status, urgent) {
		p.manager(MirrorStatus{Kind: kind, Job: on, Status: status, Urgent: urgent})
	}
	return true
}

// isUrgent: somebody waits for the result, and for the word that nothing runs any more.
func isUrgent(kind *kinds.Kind, worker *unstructured.Unstructured) bool {
	if worker == nil {
		return true
	}
	ended, known := kind.Ended(worker)
	return ended || !known
}

// isPruned tells whether the manager already has all that it can keep of a status.
func (v *view) isPruned(on *unstructured.Unstructured, status map[string]any) bool {
	pruned, found := v.Pruned[on.GetUID()]
	return found && kinds.EqualStatus(pruned.Asked, status) && kinds.SameStatus(on, pruned.Kept)
}

// allEnded is true for a job that is known to be over.
func (v *view) allEnded(jobs []*unstructured.Unstructured) bool {
	for _, job := range jobs {
		if ended, known := v.Kind.Ended(job); !ended || !known {
			return false
		}
	}
	return len(jobs) > 0
}

// mayBeOver is true for a job that has ended, and for one whose status does not tell.
func (v *view) mayBeOver(jobs ...*unstructured.Unstructured) bool {
	for _, job := range jobs {
		if ended, known := v.Kind.Ended(job); known && !ended {
			return false
		}
	}
	return true
}

func one(job *unstructured.Unstructured) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{job}
}

// showStopped mirrors that nothing of the job runs, once that is so. Kueue on
// the manager keeps the job's quota until then. A job that never ran is only
// shown as suspended, which has time.
func (v *view) showStopped(p *Plan) {
	if v.waitsForStop(p) {
		return
	}
	if w := v.find(v.Host); w != nil && (!w.Reachable || w.Blind) {
		if left := v.graceLeft(w); left > 0 {
			p.again(left)
			return
		}
	}
	for _, job := range v.Jobs {
		if active, _, _ := unstructured.NestedInt64(job.Object, "status", "active"); active == 0 {
			if left := job.GetCreationTimestamp().Add(quiet).Sub(v.Now); left > 0 {
				p.again(left)
				continue
			}
		}
		v.mirror(p, v.Kind, job, nil)
	}
	// A pod that its set made anew on the manager may have been shown as running
	// just before its namesake went.
	v.mirrorPods(p, &Worker{})
}

// waitsForStop tells whether a worker still has something of the job, and for how long that may hold it up.
func (v *view) waitsForStop(p *Plan) (waits bool) {
	for i := range v.Workers {
		w := &v.Workers[i]
		if v.isHeldOn(w) {
			waits = true
		}
		if left := v.holdsUp(w); v.holds(w) && left > 0 {
			p.again(left)
			waits = true
		}
	}
	return waits
}
