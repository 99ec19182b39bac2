package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

const (
	// enoughTries is how often a result is tried before the Workload ends without it.
	enoughTries = 3
	// enoughTime is how long it is tried at least where the fault may pass.
	enoughTime = time.Minute
)

// isPutOff tells whether a status has to wait, as one of this object was refused. Another result is tried at once.
func (v *view) isPutOff(p *Plan, on *unstructured.Unstructured, status map[string]any, urgent bool) bool {
	r, found := v.Refused[on.GetUID()]
	left := r.Again.Sub(v.Now)
	if !found || left <= 0 || urgent && !kinds.EqualStatus(r.Asked, status) {
		return false
	}
	p.again(left)
	return true
}

// refusedFor says why the final status of the job cannot be written on the manager, once that was tried often enough.
func (v *view) refusedFor(copies []*unstructured.Unstructured) string {
	for _, c := range copies {
		on := named(v.Jobs, c.GetName())
		if on == nil {
			continue
		}
		r := v.Refused[on.GetUID()]
		if r.Tries >= enoughTries && (r.Final || v.Now.Sub(r.Since) >= enoughTime) && kinds.EqualStatus(r.Asked, v.Kind.Reflect(on, c, v.Now)) {
			return r.Why
		}
	}
	return ""
}
