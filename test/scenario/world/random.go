package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Random lives through a world of faults that a seed determines, then lets the
// faults stop, and returns the world with everything that was wrong as Violations.
func Random(seed uint64) *World {
	r := rand.New(rand.NewPCG(seed, 0xfe77))
	g := newGame(r)
	for range 150 + r.IntN(250) {
		g.step()
		if len(g.world.violations) > 0 {
			return g.world
		}
	}
	g.calm()
	return g.world
}

// game is what users and faults do in a random world.
type game struct {
	world *World
	rand  *rand.Rand
	// jobs are the names of batch Jobs, sets those of LeaderWorkerSets, pods those of single pods.
	jobs, sets, pods []string
	// config is what the MultiKueueConfig lists at the end.
	config []string
}

func newGame(r *rand.Rand) *game {
	g := &game{rand: r}
	for i := range 1 + r.IntN(4) {
		g.config = append(g.config, fmt.Sprintf("w%d", i+1))
	}
	for i := range 1 + r.IntN(5) {
		g.jobs = append(g.jobs, fmt.Sprintf("job%d", i+1))
	}
	for i := range r.IntN(3) {
		g.sets = append(g.sets, fmt.Sprintf("set%d", i+1))
	}
	for i := range r.IntN(4) {
		g.pods = append(g.pods, fmt.Sprintf("pod%d", i+1))
	}
	o := Options{
		Workers: g.config, Capacity: 1 + r.IntN(3) + 2*len(g.sets), Rand: r, StepSize: 1 + r.IntN(2), Round: time.Minute, LostTimeout: 15 * time.Minute,
		Dispatcher: pick(r, placement.AllAtOnceName, placement.AllAtOnceName, placement.IncrementalName, placement.BestName, ExternalDispatcher),
	}
	if r.IntN(4) == 0 {
		o.Checks = []string{"prov"}
	}
	if r.IntN(3) == 0 {
		o.PreemptionTimeout = pick(r, time.Minute, 5*time.Minute)
	}
	if r.IntN(4) == 0 {
		o.Retain = pick(r, time.Minute, 10*time.Minute)
	}
	o.Liar = r.IntN(3) == 0
	g.world = New(o)
	g.world.Kueue.Topology = r.IntN(4) == 0
	for _, name := range g.sets {
		g.world.Call(name, cluster.Set)
	}
	for _, name := range g.pods {
		g.world.Call(name, cluster.Pod)
	}
	if r.IntN(4) > 0 {
		g.world.Faults = Faults{Fail: r.IntN(100), Lose: r.IntN(100), Late: r.IntN(60), Conflict: r.IntN(150), Between: r.IntN(400)}
	}
	return g
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (g *game) step() {
	if g.rand.IntN(40) == 0 {
		worker := pick(g.rand, g.config...)
		g.world.slow = pick(g.rand, "", "lane "+worker, "lane "+worker, "dispatch", worker, ManagerName)
	}
	switch n := g.rand.IntN(100); {
	case n < 78:
		if !g.world.StepOnce() {
			g.world.Advance(time.Second)
		}
	case n < 86:
		g.world.Advance(pick(g.rand, 100*time.Millisecond, 500*time.Millisecond, time.Second, 3*time.Second, 30*time.Second, 2*time.Minute))
	case n < 94:
		g.user()
	case n < 97:
		g.kueue()
		g.lie()
	default:
		g.disaster()
	}
}

// all are the names of all jobs.
func (g *game) all() []string { return slices.Concat(g.jobs, g.sets, g.pods) }

func (g *game) isSet(name string) bool { return slices.Contains(g.sets, name) }

// part names a Workload of the job, one of several if it has several.
func (g *game) part(name string) string {
	if n := len(g.world.Workloads(name)); n > 0 && g.isSet(name) {
		return fmt.Sprintf("%s/%d", name, g.rand.IntN(n))
	}
	return name
}

func (g *game) submit(name string) {
	g.world.Tracef("user: submit %s", name)
	switch {
	case g.isSet(name):
		_ = g.world.SubmitSet(name, int64(1+g.rand.IntN(3)))
	case slices.Contains(g.pods, name):
		_ = g.world.SubmitPod(name, pick(g.rand, "", "web"))
	default:
		_ = g.world.Submit(name, int64(1+g.rand.IntN(2)))
	}
}

func (g *game) user() {
	w, name := g.world, pick(g.rand, g.all()...)
	if w.Manager.Job(Namespace, name) == nil {
		g.submit(name)
		return
	}
	if g.isSet(name) && g.rand.IntN(2) == 0 {
		g.change(name)
		return
	}
	switch g.rand.IntN(8) {
	case 0:
		w.Tracef("user: delete %s", name)
		w.Delete(name)
	case 1:
		part := g.part(name)
		if wl := w.Workload(part); wl != nil {
			w.Tracef("user: toggle active of %s", part)
			w.Kueue.SetActive(wl, wl.Spec.Active != nil && !*wl.Spec.Active)
		}
	case 2:
		w.Tracef("user: priority of %s", name)
		w.SetPriority(name, int32(g.rand.IntN(100)))
	default:
		w.Tracef("check prov of %s", name)
		w.SetCheck(name, "prov", pick(g.rand, kueue.CheckStateReady, kueue.CheckStateReady, kueue.CheckStateRetry))
	}
}

// kueue is what Kueue and people on the workers do to a job.
func (g *game) kueue() {
	w, name, worker := g.world, pick(g.rand, g.all()...), pick(g.rand, g.config...)
	part := g.part(name)
	switch g.rand.IntN(7) {
	case 6:
		if wl := w.Copy(worker, part); wl != nil && w.workers[worker].Kueue.BlockOnGate(wl) {
			w.Tracef("%s: %s would have to preempt", worker, part)
		}
	case 0:
		if wl := w.Workload(part); wl != nil && w.Kueue.Evict(wl) {
			w.Tracef("manager: %s preempted", part)
		}
	case 1:
		if wl := w.Copy(worker, part); wl != nil && w.workers[worker].Kueue.Evict(wl) {
			w.Tracef("%s: %s preempted", worker, part)
		}
	case 2:
		w.Tracef("%s: somebody deletes the copy of %s", worker, part)
		w.DeleteOnWorker(worker, part, pick(g.rand, "Job", "Workload"))
	case 3:
		w.Tracef("%s: foreign %s", worker, name)
		_ = w.Foreign(worker, name, pick(g.rand, "", "another-manager"))
	case 4:
		w.Tracef("%s: foreign %s goes", worker, name)
		w.RemoveForeign(worker, name)
	case 5:
		if why := pick(g.rand, "", "", "FailedToStart", "OwnerNotFound", "Invented"); why != "" {
			if job := w.JobOn(worker, name); job == nil || !endedAlready(job) {
				w.Tracef("%s: %s ended by %s", worker, part, why)
				w.EndOn(worker, part, why)
			}
		} else if w.OutOfSync(worker, part) {
			w.Tracef("%s: %s is out of sync", worker, part)
		}
	}
}

func (g *game) disaster() {
	w, worker := g.world, pick(g.rand, g.config...)
	switch g.rand.IntN(15) {
	case 13:
		w.AnnotateCluster(worker, pick(g.rand, placement.CordonAnnotation, placement.DrainAnnotation), pick(g.rand, "true", ""))
	case 14:
		name := pick(g.rand, g.all()...)
		if w.Manager.Job(Namespace, name) != nil {
			w.AnnotateJob(name, pick(g.rand, placement.ClustersAnnotation, placement.KeepAnnotation), pick(g.rand, "", "true", worker, strings.Join(g.config, ",")))
		}
	case 10:
		w.refuses = true
		w.Fail(ManagerName+" patch "+pick(g.rand, kindNames...), pick(g.rand, 403, 404, 422))
	case 11:
		w.Tracef("%s: a watch falls silent", worker)
		w.Held[worker+" "+pick(g.rand, kindNames...)] = true
	case 12:
		w.Tracef("all watches are heard again")
		clear(w.Held)
	case 8:
		which := worker + " " + pick(g.rand, "create", "create Job", "create Workload", "delete", "delete Job", "patch Job", "patch Workload")
		w.Fail(which, pick(g.rand, 403, 422, 500, 504))
	case 9:
		w.HealAll()
	case 0, 1:
		w.Cut(worker)
	case 2, 3, 4:
		w.Mend(worker)
	case 5:
		if w.Up() {
			w.StopFerry()
		} else {
			w.StartFerry()
		}
	case 6:
		g.reconfigure()
	case 7:
		if w.Up() {
			w.Tracef("ferry: every event again")
			w.Repeat()
		}
	}
	if !w.Up() && g.rand.IntN(2) == 0 {
		w.StartFerry()
	}
}

// kindNames are the kinds of jobs.
var kindNames = []string{cluster.Job.Kind, cluster.Set.Kind, cluster.Pod.Kind}

func (g *game) reconfigure() {
	names := slices.DeleteFunc(slices.Clone(g.config), func(string) bool { return g.rand.IntN(3) == 0 })
	g.world.Tracef("admin: the config names %v", names)
	g.world.SetWorkers(names)
}

// calm ends all faults and lets the world come to rest, then asks what must hold.
func (g *game) calm() {
	w := g.world
	w.Tracef("--- calm ---")
	w.Faults, w.slow = Faults{}, ""
	clear(w.Held)
	for _, job := range g.all() {
		if w.Manager.Job(Namespace, job) != nil {
			w.AnnotateJob(job, placement.ClustersAnnotation, "")
		}
	}
	if !w.Up() {
		w.StartFerry()
	}
	w.SetWorkers(g.config)
	for _, name := range w.names {
		w.AnnotateCluster(name, placement.CordonAnnotation, "")
		w.AnnotateCluster(name, placement.DrainAnnotation, "")
		w.Mend(name)
		for _, job := range g.all() {
			w.RemoveForeign(name, job)
		}
		if len(g.sets)+len(g.pods) > 0 {
			// Sets and Deployments have no end, and wait for all that they need.
			w.workers[name].Kueue.Capacity = 1000
		}
	}
	for _, job := range g.all() {
		for _, wl := range w.Workloads(job) {
			if wl.Spec.Active != nil && !*wl.Spec.Active {
				w.Kueue.SetActive(wl, true)
			}
		}
	}
	g.settle()
	g.checkFixedPoint()
	if len(g.sets) > 0 {
		g.quiet()
		g.checkFixedPoint()
	}
}

// settle lets the world come to rest and asks what must hold then.
func (g *game) settle() {
	if !g.rest(2 * time.Hour) {
		g.world.Violation("invariant 8: the world comes to no rest")
		return
	}
	g.checkRest()
}

// rest lets everything happen, in random order, until nothing is left to do.
func (g *game) rest(patience time.Duration) bool {
	w := g.world
	until := w.Clock.Now().Add(patience)
	for range 6000 {
		if len(w.violations) > 0 {
			return true
		}
		g.readyChecks()
		if w.StepOnce() {
			continue
		}
		at := w.ferry.nextWake()
		if at.IsZero() || at.After(until) {
			return true
		}
		w.Advance(max(at.Sub(w.Clock.Now()), time.Millisecond))
	}
	return false
}

func (g *game) readyChecks() {
	for _, job := range g.all() {
		for _, wl := range g.world.Workloads(job) {
			if len(wl.Status.AdmissionChecks) > 1 && wl.Status.AdmissionChecks[1].State != kueue.CheckStateReady && wl.Status.ClusterName == nil {
				g.world.setCheck(wl, "prov", kueue.CheckStateReady)
			}
		}
	}
}

func (g *game) checkRest() {
	w := g.world
	if len(w.violations) > 0 {
		return
	}
	if left := w.Leftovers(); len(left) > 0 {
		w.Violation("invariant 5: left over: %v", left)
	}
	if jobs := w.Unfinished(); len(jobs) > 0 {
		w.Violation("invariant 6: not finished: %v", jobs)
	}
	if sets := w.Unsettled(); len(sets) > 0 {
		w.Violation("invariant 6: not whole: %v", sets)
	}
}

// checkFixedPoint: where all is done, nothing is to do again.
func (g *game) checkFixedPoint() {
	w := g.world
	if len(w.violations) > 0 {
		return
	}
	before := w.Writes
	w.Resync()
	w.Repeat()
	g.rest(2 * time.Hour)
	if w.Writes != before {
		w.Violation("invariant 8: a resync of a world at rest makes %d requests", w.Writes-before)
	}
}
