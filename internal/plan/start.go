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

// startsIn is how long a job that was placed may take to have a ready pod before its worker is asked for warnings.
const startsIn = 10 * time.Second

// awayFor is how long the worker of a running job is out of reach before its users are told.
const awayFor = time.Minute

// followStart tells users what keeps a job that was placed from starting, once its worker has had time, and lets a job
// that never ran leave a worker where it cannot start.
func (v *view) followStart(p *Plan, w *Worker) {
	since := v.readySince()
	if since.IsZero() {
		return
	}
	start := v.start(w)
	if start == kinds.StartUnknown || start == kinds.PodsReady {
		v.inform(p, w, "")
		return
	}
	if left := since.Add(startsIn).Sub(v.Now); left > 0 {
		p.again(left)
		return
	}
	if start == kinds.NotReady && v.leave(p, w, since) {
		return
	}
	switch {
	case w.Warning != "":
		p.Because = reason.But(reason.Admitted(w.Name), reason.NotStarted(w.Warning))
		v.inform(p, w, reason.NotStarted(w.Warning))
	case v.saysAway(w):
		v.inform(p, w, "")
	}
	if left := w.AskWarnings.Sub(v.Now); left > 0 {
		p.again(left)
		return
	}
	p.worker(w.Name, AskWarnings{Jobs: w.Jobs, Due: w.AskWarnings})
}

// readySince is when the checks of all Workloads had become Ready; zero as long as one is not.
func (v *view) readySince() time.Time {
	var since time.Time
	for _, wl := range v.Workloads {
		c := v.check(wl)
		if c == nil || c.State != kueue.CheckStateReady {
			return time.Time{}
		}
		if c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// start is how far the slowest of the job's objects on the worker is; but none is NotReady when something of the job may have run.
func (v *view) start(w *Worker) kinds.Start {
	slowest, ran := kinds.PodsReady, false
	for _, job := range w.Jobs {
		is := v.Kind.Start(job)
		slowest, ran = min(slowest, is), ran || is >= kinds.HasRun
	}
	ran = ran || slices.ContainsFunc(w.Pods, func(pod *unstructured.Unstructured) bool { return v.Kind.PodKind().Start(pod) >= kinds.HasRun })
	if slowest == kinds.NotReady && ran {
		return kinds.HasRun
	}
	return slowest
}

// leave offers a job to the other workers that never ran on its own, once that has said why for long enough, and tells
// whether it did so. Only what this process placed is known never to have run.
func (v *view) leave(p *Plan, w *Worker, since time.Time) bool {
	if v.Policy.StartTimeout <= 0 || !w.NeverRan || w.Warning == "" || !v.hasChoice(w) {
		return false
	}
	if left := since.Add(v.Policy.StartTimeout).Sub(v.Now); left > 0 {
		p.again(left)
		return false
	}
	message := reason.Fit(reason.NeverStarted(w.Name, w.Warning))
	p.Because = message
	for _, wl := range v.Workloads {
		p.manager(SetCheck{Workload: wl, Check: v.Check, State: kueue.CheckStateRetry, Message: message, Event: true, Warning: true, Rest: &Rest{Worker: w.Name, Why: w.Warning}})
	}
	return true
}

// hasChoice tells whether another worker could take the job.
func (v *view) hasChoice(than *Worker) bool {
	return slices.ContainsFunc(v.Workers, func(w Worker) bool { return w.Name != than.Name && v.eligible(&w) })
}

// inform keeps the message of a Ready check up to date: what it says of a job that runs well, and after that what does
// not go well, if anything. Nothing else is taken out of a message that others wrote.
func (v *view) inform(p *Plan, w *Worker, trouble string) {
	plain, told := reason.Admitted(w.Name), trouble == "" || len(v.Jobs) == 0
	for _, wl := range v.Workloads {
		c := v.check(wl)
		if c == nil || c.State != kueue.CheckStateReady {
			continue
		}
		message := reason.Fit(reason.But(plain, trouble))
		if c.Message == message || trouble == "" && !strings.HasPrefix(c.Message, reason.But(plain, " ")) {
			continue
		}
		set := SetCheck{Workload: wl, Check: v.Check, State: c.State, Message: message, Informs: true}
		if !told {
			set.Tell, told = v.Jobs[0], true
		}
		p.manager(set)
	}
}

// informOfLoss tells once for each loss that the worker of a running job has been away for a while.
func (v *view) informOfLoss(p *Plan, w *Worker) {
	if left := w.LostSince.Add(awayFor).Sub(v.Now); left > 0 {
		p.again(left)
		return
	}
	if !v.saysAway(w) { // another process may have counted from another moment
		v.inform(p, w, reason.AwaySince(w.LostSince))
	}
}

// saysAway tells whether users were told that the worker is out of reach.
func (v *view) saysAway(w *Worker) bool {
	return v.any(func(wl *kueue.Workload) bool {
		c := v.check(wl)
		return c != nil && strings.HasPrefix(c.Message, reason.But(reason.Admitted(w.Name), reason.Away))
	})
}
