package capacity

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func noFlavorFor(name corev1.ResourceName) string {
	return fmt.Sprintf("no flavor of its queue has %s", name)
}

// shortage says what of a quota is missing.
func (p *predictor) shortage(at place, amount int64) string {
	if most := p.queue.potential(at); amount > most {
		return fmt.Sprintf("its queue can never have more than %s %s", show(at.resource, most), at.resource)
	}
	return p.free(at)
}

// free says what of a quota is free.
func (p *predictor) free(at place) string {
	free := max(p.used.available(p.queue, at), 0)
	return fmt.Sprintf("%s %s free of %s", show(at.resource, free), at.resource, show(at.resource, p.queue.potential(at)))
}

// fit is the answer for an assignment; fewer is how many pods were left out for it.
func (p *predictor) fit(got assignment, class Class, fewer int64) Fit {
	fit := Fit{Class: class, Why: got.why}
	scarcest := place{}
	fit.Free, scarcest = p.left(got.needs)
	switch {
	case class == FitsLater:
		fit.Wait = p.wait(got)
		fit.Free = 0
	case class == NeverFits:
		fit.Free = 0
		return fit
	case scarcest != place{}:
		fit.Why = p.free(scarcest)
	default:
		fit.Why = "it asks for nothing that the queue counts"
	}
	switch class {
	case FitsBorrowing:
		fit.Why += ", some of it borrowed from the cohort"
	case FitsPreempting:
		fit.Why += ", the rest by preempting others"
	}
	if fewer > 0 && class <= FitsPreempting {
		fit.Why += fmt.Sprintf(", with %d pods fewer", fewer)
	}
	return fit
}

// left is the share that is free once the Workload runs, where that is least.
func (p *predictor) left(needs map[place]int64) (share float64, scarcest place) {
	share = 1
	for at, amount := range needs {
		most := p.queue.potential(at)
		free := 0.0
		if most > 0 {
			free = float64(minus(p.used.available(p.queue, at), amount)) / float64(most)
		}
		free = min(max(free, 0), 1)
		if scarcest == (place{}) || free < share || free == share && less(at, scarcest) {
			share, scarcest = free, at
		}
	}
	return share, scarcest
}

func less(a, b place) bool {
	return a.resource > b.resource || a.resource == b.resource && a.flavor < b.flavor // extended resources are named last, and are the dearest
}

// wait grows with what waits there already, and with what is missing.
func (p *predictor) wait(got assignment) time.Duration {
	turns := 1.0
	pending := float64(max(p.queue.queue.Status.PendingWorkloads, 0))
	for at, amount := range got.needs {
		most := float64(max(p.queue.potential(at), 1))
		missing := float64(max(minus(amount, p.used.available(p.queue, at)), 0))
		turns = max(turns, (missing+pending*float64(amount))/most)
	}
	return time.Duration(min(turns*float64(turn), float64(math.MaxInt64/2)))
}
