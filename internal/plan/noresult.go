package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// failedToStart is Kueue's reason for the end of a Workload whose job it cannot start; its API does not name it.
const failedToStart = "FailedToStart"

// endShows is how long a job may take to show its end after Kueue ended its
// Workload for a reason that does not tell.
const endShows = time.Minute

// ending is what the end of a copy says about its job.
type ending int

const (
	notEnded ending = iota
	isResult
	// isOutOfSync: the job was changed there, so Kueue takes it for another.
	isOutOfSync
	// neverRan: Kueue there could not start the job.
	neverRan
	// isOrphaned: the job is being deleted there.
	isOrphaned
	// isUnclear: a reason that says nothing about the job, or that Ferry does not know.
	isUnclear
)

// endOf is what the end of a copy means. What the job itself says comes first.
func (v *view) endOf(w *Worker, c *kueue.Workload) ending {
	f := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadFinished)
	switch {
	case f == nil || f.Status != metav1.ConditionTrue:
		return notEnded
	case saysResult(f.Reason), v.allEnded(w.Jobs) && v.Kind.Whole(w.Jobs):
		return isResult
	}
	switch f.Reason {
	case kueue.WorkloadSliceReplaced:
		if v.elastic {
			return notEnded // the next slice is on its way
		}
		return isUnclear
	case kueue.WorkloadFinishedReasonOutOfSync:
		return isOutOfSync
	case failedToStart:
		return neverRan
	case kueue.WorkloadFinishedReasonOwnerNotFound:
		return isOrphaned
	default:
		return isUnclear
	}
}

func saysResult(why string) bool {
	return why == kueue.WorkloadFinishedReasonSucceeded || why == kueue.WorkloadFinishedReasonFailed
}

var noResult = Rule{
	Name: "NoResult",
	Doc:  "Kueue on the worker that holds the claim ended the copy for a reason that is no result: the job could not be started there, or is being deleted there, or the reason is unknown and the job does not show its end within a minute. The check becomes Retry, with a warning, and the worker rests for this job. A pod that ran there never runs again: its end is waited for, and once it is gone it is shown as failed.",
	decide: func(v *view, p *Plan) bool {
		w := v.find(v.claim())
		if w == nil || !w.Reachable || w.Blind || v.Kind == nil {
			return false // what the job itself shows comes first, once it can be seen
		}
		for _, c := range w.Workloads {
			if v.endWithoutResult(p, w, c) {
				return true
			}
		}
		return false
	},
}

func (v *view) endWithoutResult(p *Plan, w *Worker, c *kueue.Workload) bool {
	f := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadFinished)
	switch v.endOf(w, c) {
	case neverRan:
		v.sendBack(p, w, c, reason.FailedToStart(w.Name, f.Message), reason.FailedToStartHere(f.Message), false)
	case isOrphaned:
		if v.followLoss(p, w) {
			return true
		}
		v.sendBack(p, w, c, reason.CopyGone(w.Name, v.Kind.GVK.Kind), reason.CopyGoneHere(v.Kind.GVK.Kind), true)
	case isUnclear:
		if left := v.since(c, kueue.WorkloadFinished).Add(endShows).Sub(v.Now); left > 0 {
			p.again(left)
			v.mirrorAll(p, w)
			p.Because = reason.EndUnclear(w.Name, f.Reason)
			return true
		}
		v.sendBack(p, w, c, reason.EndUnclear(w.Name, f.Reason)+reason.OfferingAgain, reason.EndUnclearHere(f.Reason), false)
	default:
		return false
	}
	return true
}

// sendBack gives back the Workload of a copy, and with it the job, unless others of the job run on.
func (v *view) sendBack(p *Plan, w *Worker, c *kueue.Workload, message, why string, lenient bool) {
	if v.many() {
		v.settleOne(p, v.original(c.Name), kueue.CheckStateRetry, message, true)
		return
	}
	v.retryWithRest(p, w, message, Rest{Why: why, Lenient: lenient})
}
