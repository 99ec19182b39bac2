package world

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// Liar is the name of the worker, of the fleet but of no MultiKueueConfig, that has objects with Ferry's marks which
// Ferry never made there. What it shows of a job never happened to the job.
const Liar = "liar"

// Lie lets the liar have the batch Job of this name, with the marks of a reservation. Its Kueue takes it for one that
// Ferry sent, and runs it to its end.
func (w *World) Lie(name, reservation string) {
	c, job := w.workers[Liar].Cluster, w.Manager.Job(Namespace, name)
	if job == nil || w.JobOn(Liar, name) != nil {
		return
	}
	marks := kinds.Marks{Origin: Origin, Worker: Liar, Reservation: reservation}
	for _, wl := range w.Kueue.WorkloadsOf(job) {
		if _, err := c.Create(kinds.ProjectWorkload(wl, w.refOf(name), marks)); err != nil {
			return // Ferry has not removed the last lie yet
		}
		_, _ = c.Create(kinds.NewTable(kinds.Frameworks()).ByName("Job.batch").Project(job, wl, marks))
	}
}

// lie tells one about any job: of its present reservation, of an earlier one or of what was never one.
func (g *game) lie() {
	w, name := g.world, pick(g.rand, g.jobs...)
	wl := w.Workload(name)
	if w.workers[Liar] == nil || wl == nil {
		return
	}
	invented := fmt.Sprintf("%d-%d", g.rand.Int64N(plan.Evictions(wl)+1), w.Clock.Now().Unix())
	reservation := pick(g.rand, plan.Reservation(wl), invented, invented, "0-0", "never")
	w.Tracef("liar: has %s, of reservation %s", name, reservation)
	w.Lie(name, reservation)
}

// truth are the batch Jobs that ended on a worker that does not lie, by their UIDs on the manager.
type truth map[types.UID]bool

func (t truth) note(job *unstructured.Unstructured) {
	if ended, _ := kueuemodel.Ended(job); ended {
		t[origin(job)] = true
	}
}

// checkTrue: no job is over on the manager that never was where it ran.
func (w *World) checkTrue(job *unstructured.Unstructured, what string) {
	if job.GetKind() == cluster.Job.Kind && !w.book.truth[job.GetUID()] {
		w.Violation("invariant 4: %s of job %s is over on the manager, which it never was on a worker that had it", what, job.GetName())
	}
}

// checkTrueFinish is checkTrue for a Workload that ends while its job is there.
func (w *World) checkTrueFinish(wl *kueue.Workload) {
	for _, owner := range wl.OwnerReferences {
		if job := w.Manager.Job(wl.Namespace, owner.Name); job != nil && job.GetUID() == owner.UID && job.GetDeletionTimestamp() == nil {
			w.checkTrue(job, "the Workload")
		}
	}
}
