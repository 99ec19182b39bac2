package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// say puts a sentence into the pending check's message, once it has been true for a while.
func (v *view) say(p *Plan, message string) {
	message = reason.Fit(message)
	p.Because = message
	for _, wl := range v.Workloads {
		c := v.check(wl)
		if c == nil || c.State != kueue.CheckStatePending || c.Message == message {
			continue
		}
		if left := c.LastTransitionTime.Add(quiet).Sub(v.Now); left > 0 {
			p.again(left)
			continue
		}
		p.manager(SetCheck{Workload: wl, Check: v.Check, State: kueue.CheckStatePending, Message: message})
	}
}

// retry gives the job back to Kueue on the manager, which evicts and requeues it.
func (v *view) retry(p *Plan, message string, warning bool) {
	v.settle(p, kueue.CheckStateRetry, message, warning)
}

// settle moves the check of every unfinished Workload to a state.
func (v *view) settle(p *Plan, state kueue.CheckState, message string, warning bool) {
	message = reason.Fit(message)
	p.Because = message
	for _, wl := range v.Workloads {
		if c := v.check(wl); c != nil && c.State != state && !isTrue(wl, kueue.WorkloadFinished) {
			p.manager(SetCheck{Workload: wl, Check: v.Check, State: state, Message: message, Event: true, Warning: warning})
		}
	}
}

// mirror brings the status of the job's copy to the manager, if that changes anything.
func (v *view) mirror(p *Plan, worker *unstructured.Unstructured) (changed bool) {
	if v.Job == nil || v.Kind == nil {
		return false
	}
	status := v.Kind.Reflect(v.Job, worker, v.Now)
	if kinds.SameStatus(v.Job, status) || v.isPruned(status) {
		return false
	}
	p.manager(MirrorStatus{Kind: v.Kind, Job: v.Job, Status: status, Urgent: worker == nil || v.mayBeOver(worker)})
	return true
}

// isPruned tells whether the manager already has all that it can keep of a status.
func (v *view) isPruned(status map[string]any) bool {
	return v.Pruned != nil && kinds.EqualStatus(v.Pruned.Asked, status) && kinds.SameStatus(v.Job, v.Pruned.Kept)
}

// mayBeOver is true for an ended job, and for one whose status does not tell.
func (v *view) mayBeOver(job *unstructured.Unstructured) bool {
	ended, known := v.Kind.Ended(job)
	return ended || !known
}

// showStopped mirrors that nothing of the job runs, once that is so. Kueue on
// the manager keeps the job's quota until then. A job that never ran is only
// shown as suspended, which has time.
func (v *view) showStopped(p *Plan) {
	for i := range v.Workers {
		if w := &v.Workers[i]; w.Reachable && v.holds(w) {
			return
		}
	}
	if w := v.find(v.Host); w != nil && (!w.Reachable || w.Blind) {
		if left := v.graceLeft(w); left > 0 {
			p.again(left)
			return
		}
	}
	if v.Job == nil {
		return
	}
	if active, _, _ := unstructured.NestedInt64(v.Job.Object, "status", "active"); active == 0 {
		if left := v.Job.GetCreationTimestamp().Add(quiet).Sub(v.Now); left > 0 {
			p.again(left)
			return
		}
	}
	v.mirror(p, nil)
}
