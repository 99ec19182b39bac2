package world

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cache"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Faults says what may go wrong with requests; zero: nothing.
type Faults struct {
	// Fail, Lose and Late are the chances, of 1000, that a request to a worker
	// fails, that its answer is lost, and that it arrives later, unnoticed.
	Fail, Lose, Late int
	// Conflict is the chance, of 1000, that a write on the manager fails as a conflict.
	Conflict int
	// Between is the chance, of 1000, that the world moves on between a decision and its write.
	Between int
	// Once fails the next request of a verb to a cluster with a code of HTTP, Always all
	// of them until they are mended; keys are like "w1 create" or "w1 create Job".
	Once, Always map[string]int
	// Answer, if set, says what a worker answers to a request: a code of HTTP,
	// where 200 claims a success that changes nothing; zero: it does what is asked.
	Answer func(worker, verb string, key cluster.Key) int
}

// Connect gives Ferry a live connection to a worker, with caches that list everything there is now.
func (w *World) Connect(name string) {
	worker := w.workers[name]
	if w.ferry == nil || worker.link != nil {
		return
	}
	l := &link{world: w, worker: worker}
	lean := func(wl *kueue.Workload) { kinds.LeanCopy(name, wl) }
	streams := []cache.Stream{cache.Ours("Workload", Origin).Lean(lean), cache.All("LocalQueue")}
	for _, kind := range cluster.JobKinds {
		streams = append(streams, cache.Ours(kind.Kind, Origin))
	}
	for _, kind := range []schema.GroupVersionKind{cluster.Job, cluster.Set} {
		streams = append(streams, cache.Names(kind))
	}
	l.cache = cache.New(worker.Cluster, streams...)
	f := w.ferry
	l.cache.Handle = func(d cache.Delivery) { f.sawWorker(name, d) }
	worker.link, worker.seen = l, true
	w.Tracef("fleet: %s connected", name)
	w.connected(name)
}

// SyncJobs lets the informers of the job kinds come after the connection.
func (w *World) SyncJobs(name string) {
	l := w.workers[name].link
	if l == nil || l.jobs {
		return
	}
	l.jobs = true
	w.Tracef("fleet: %s serves jobs", name)
	w.connected(name)
}

// Unserve lets a worker stop to serve jobs, as when their informers fail.
func (w *World) Unserve(name string) {
	if l := w.workers[name].link; l != nil {
		l.jobs = false
		w.Held["sync "+name] = true
		w.connected(name)
	}
}

// LetJobsBeRead says whether Ferry can read the manager's jobs, as it cannot without the CRD of their kind.
func (w *World) LetJobsBeRead(can bool) {
	w.unread = !can
	w.Resync()
}

func (w *World) refuseOnManager(kind string) error {
	if gvk := dispatched(kind); gvk != nil && w.unread {
		return &jobs.NotServedError{Kind: *gvk, Why: "its CRD is not installed"}
	}
	return nil
}

// connected is the wiring: whatever concerns this worker is decided anew.
func (w *World) connected(name string) {
	w.workers[name].link.cache.Replay()
	w.ferry.workerChanged(name)
	w.ferry.enqueue(name, w.ferry.held(name)...)
}

// Cut stops all requests and events between Ferry and a worker; Ferry does not know yet.
func (w *World) Cut(name string) {
	w.workers[name].Cut = true
	w.book.doubt(name)
	w.Tracef("network: %s cut off", name)
}

// Notice lets Ferry's probes find out that a worker is lost.
func (w *World) Notice(name string) {
	worker := w.workers[name]
	if worker.link == nil {
		return
	}
	w.disconnect(worker)
	worker.lostSince = w.Clock.Now()
	w.Tracef("fleet: %s lost", name)
	w.ferry.workerChanged(name)
}

func (w *World) disconnect(worker *Worker) {
	w.book.doubt(worker.Name)
	if worker.link == nil {
		return
	}
	if w.ferry != nil {
		w.ferry.observer.Memory.Lost(worker.Name)
	}
	worker.link.dead = true
	worker.link.cache.Stop()
	worker.link = nil
}

// Mend lets requests through again; Ferry still has to connect.
func (w *World) Mend(name string) {
	w.workers[name].Cut = false
	w.Tracef("network: %s mended", name)
}

func (w *World) chance(of1000 int) bool {
	return w.rand != nil && of1000 > 0 && w.rand.IntN(1000) < of1000
}

// throughManager carries a request to the manager.
func (w *World) throughManager(verb string, key cluster.Key, run func() error) error {
	w.Writes++
	w.between()
	w.count(ManagerName, verb, key)
	if code := w.refusal(ManagerName, verb, key); code != 0 {
		w.Tracef("  ferry: %s %s on the manager: %d", verb, key, code)
		return failure(code, key)
	}
	if w.chance(w.Faults.Conflict) {
		w.Tracef("network: %s %s on the manager conflicts", verb, key)
		return apierrors.NewConflict(schema.GroupResource{Resource: key.Kind}, key.Name, errors.New("somebody else was faster"))
	}
	if w.chance(w.Faults.Lose) {
		err := run()
		w.Tracef("network: the answer to %s %s on the manager is lost (%v)", verb, key, err)
		return errNoAnswer
	}
	err := run()
	w.Tracef("  ferry: %s %s on the manager: %s", verb, key, outcome(err))
	return err
}

// carry takes a request to a worker, through whatever the network does to it.
func (w *World) carry(worker *Worker, verb string, key cluster.Key, run func() error) error {
	w.between()
	w.count(worker.Name, verb, key)
	if code := w.refusal(worker.Name, verb, key); code != 0 {
		w.Tracef("  ferry: %s %s on %s: %d", verb, key, worker.Name, code)
		return failure(code, key)
	}
	if w.Faults.Answer != nil {
		if code := w.Faults.Answer(worker.Name, verb, key); code != 0 {
			w.Tracef("  ferry: %s %s on %s: answered %d", verb, key, worker.Name, code)
			return failure(code, key)
		}
	}
	switch {
	case worker.Cut, w.chance(w.Faults.Fail):
		w.Tracef("network: %s %s does not reach %s", verb, key, worker.Name)
		return errNoAnswer
	case w.chance(w.Faults.Late) && verb != "get":
		w.Tracef("network: %s %s to %s is slow", verb, key, worker.Name)
		w.late = append(w.late, lateWrite{worker, fmt.Sprintf("%s %s", verb, key), run})
		return errNoAnswer
	case w.chance(w.Faults.Lose):
		err := run()
		w.book.doubt(worker.Name)
		w.Tracef("network: the answer to %s %s on %s is lost (%v)", verb, key, worker.Name, err)
		return errNoAnswer
	}
	err := run()
	w.Tracef("  ferry: %s %s on %s: %s", verb, key, worker.Name, outcome(err))
	return err
}

// refusal is the code that a request to a cluster fails with; zero: it does not.
func (w *World) refusal(name, verb string, key cluster.Key) int {
	for _, which := range []string{name + " " + verb, name + " " + verb + " " + key.Kind} {
		if code, found := w.Faults.Once[which]; found {
			delete(w.Faults.Once, which)
			return code
		}
		if code, found := w.Faults.Always[which]; found {
			return code
		}
	}
	return 0
}

// Fail makes requests fail until Heal, all of a verb to a cluster or only those for a kind.
func (w *World) Fail(which string, code int) {
	if w.Faults.Always == nil {
		w.Faults.Always = map[string]int{}
	}
	w.Faults.Always[which] = code
	w.Tracef("fault: %s fails with %d", which, code)
}

// Heal lets requests through again.
func (w *World) Heal(which string) {
	delete(w.Faults.Always, which)
	w.Tracef("fault: %s is mended", which)
}

// HealAll lets all requests through again.
func (w *World) HealAll() {
	w.Faults.Always = nil
	w.Tracef("fault: all are mended")
}

// Land lets the i-th slow request arrive.
func (w *World) Land(i int) {
	late := w.late[i]
	w.late = append(w.late[:i:i], w.late[i+1:]...)
	if late.worker.Cut {
		w.Tracef("network: slow %s is lost on the way to %s", late.what, late.worker.Name)
		return
	}
	w.book.doubt(late.worker.Name)
	w.Tracef("network: slow %s arrives on %s: %s", late.what, late.worker.Name, outcome(w.arrive(late)))
}

// between lets the world move on between a decision and its write.
func (w *World) between() {
	if w.depth > 0 || !w.chance(w.Faults.Between) {
		return
	}
	w.depth++
	w.moved = true
	for range 1 + w.rand.IntN(3) {
		w.StepOnce()
	}
	w.depth--
}

// endless is how often one request is made at once only in a loop.
const endless = 50

// count notes a request. Times counts those of one verb for one object since the time last moved.
func (w *World) count(name, verb string, key cluster.Key) {
	if now := w.Clock.Now(); !now.Equal(w.countedAt) {
		w.countedAt, w.times = now, map[string]int{}
	}
	what := fmt.Sprintf("%s: %s %s", name, verb, key)
	w.times[what]++
	if w.times[what] > w.Most {
		w.Most, w.MostOf = w.times[what], what
	}
	if w.times[what] == endless {
		w.Violation("a loop: %d times %q without time passing", endless, what)
	}
}

func outcome(err error) string {
	if err == nil {
		return "done"
	}
	return err.Error()
}

func failure(code int, key cluster.Key) error {
	switch code {
	case 200:
		return nil
	case 403:
		return apierrors.NewForbidden(schema.GroupResource{Resource: key.Kind}, key.Name, errors.New("the account may not do this"))
	case 404:
		return apierrors.NewNotFound(schema.GroupResource{Resource: key.Kind}, key.Name)
	case 409:
		return apierrors.NewConflict(schema.GroupResource{Resource: key.Kind}, key.Name, errors.New("changed"))
	case 413:
		return apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	case 422:
		return apierrors.NewInvalid(schema.GroupKind{Kind: key.Kind}, key.Name, nil)
	case 504:
		return errNoAnswer
	case 429:
		return apierrors.NewTooManyRequests("slow down", 1)
	default:
		return apierrors.NewInternalError(fmt.Errorf("status %d", code))
	}
}

func refKey(ref kinds.Ref) cluster.Key {
	return cluster.Key{Kind: schema.ParseGroupKind(ref.Kind).Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// arrive lets a slow request take effect, which its sender has given up by now.
func (w *World) arrive(late lateWrite) error {
	w.moved = true
	return late.run()
}
