package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

var admittedSomewhere = Rule{
	Name: "AdmittedSomewhere",
	Doc:  "Kueue on a nominated worker admitted the copy: the manager's Workload is assigned to that worker, the one that admitted first, where within a second is the same time and such ties are spread; only then anything is placed.",
	decide: func(v *view, p *Plan) bool {
		winner := v.winner()
		if winner == nil {
			return false
		}
		p.Because = fmt.Sprintf("Worker %q admitted the job", winner.Name)
		for _, wl := range v.Workloads {
			p.manager(Claim{Workload: wl, Check: v.Check, Worker: winner.Name, Message: reason.Placing(winner.Name)})
		}
		return true
	},
}

// winner is the worker that was first seen to have admitted the job. In a burst all
// answers are there before anybody looks: those of about one time are equal,
// and each job has an order of its own among the workers that gave them.
func (v *view) winner() *Worker {
	admitted := map[*Worker]time.Time{}
	var first time.Time
	for i := range v.Workers {
		w := &v.Workers[i]
		if at, is := v.admittedAt(w); is {
			if admitted[w] = at; first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	var best *Worker
	for w, at := range admitted {
		if len(w.Jobs) > 0 {
			at = first // MultiKueue claims only after it has placed the job
		}
		if at.Sub(first) <= time.Second && (best == nil || v.prefers(w, best)) {
			best = w
		}
	}
	return best
}

// prefers a worker that has the job already, and else orders workers anew for each job (rendezvous hashing), whatever the config's order.
func (v *view) prefers(a, b *Worker) bool {
	if hasJob := len(a.Jobs) > 0; hasJob != (len(b.Jobs) > 0) {
		return hasJob
	}
	x, y := v.affinity(a), v.affinity(b)
	return x > y || x == y && a.Name < b.Name
}

func (v *view) affinity(w *Worker) uint64 {
	sum := sha256.Sum256([]byte(string(v.Workloads[0].UID) + "/" + w.Name))
	return binary.BigEndian.Uint64(sum[:])
}

// admittedAt tells whether the worker may have the job, and since when.
func (v *view) admittedAt(w *Worker) (time.Time, bool) {
	var at time.Time
	if !v.eligible(w) || len(v.copies(w)) == 0 {
		return at, false
	}
	for _, c := range v.copies(w) {
		if !isTrue(c, kueue.WorkloadAdmitted) || isTrue(c, kueue.WorkloadEvicted) || isTrue(c, kueue.WorkloadFinished) ||
			!c.DeletionTimestamp.IsZero() || !slices.Contains(v.original(c.Name).Status.NominatedClusterNames, w.Name) {
			return at, false
		}
		if since := v.since(c, kueue.WorkloadAdmitted); since.After(at) {
			at = since
		}
	}
	return at, true
}
