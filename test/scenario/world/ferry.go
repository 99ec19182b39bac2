package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/controllers/dispatch"
	"ferry.dev/ferry/internal/controllers/drain"
	"ferry.dev/ferry/internal/controllers/lane"
	"ferry.dev/ferry/internal/controllers/mirror"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/cache"
	"ferry.dev/ferry/test/scenario/cluster"
)

// dispatchQueue is where the manager's queue stands among the workers' lanes.
const dispatchQueue = ""

// mirrorQueue is where the queue of the statuses stands among them.
const mirrorQueue = "mirror"

var metrics = apply.NewMetrics(prometheus.NewRegistry(), "standalone")

// ferry is one life of the process: all that a restart loses.
type ferry struct {
	world    *World
	cache    *cache.Cache
	observer *observe.Observer
	dispatch *dispatch.Reconciler
	mirror   *mirror.Reconciler
	drains   *drain.Reconciler
	toDrain  map[string]bool
	lanes    map[string]*lane.Reconciler
	queues   map[string]*queue
	// names are the queues in a fixed order.
	names []string
	// busy are the jobs that are being worked on, by queue.
	busy map[string][]kinds.Ref
	now  kinds.Ref
}

// StartFerry starts the process: its caches list, its connections begin.
func (w *World) StartFerry() {
	memory := observe.NewMemory()
	f := &ferry{world: w, lanes: map[string]*lane.Reconciler{}, queues: map[string]*queue{}, busy: map[string][]kinds.Ref{}}
	streams := []cache.Stream{cache.All("Workload").Lean(kinds.LeanWorkload), cache.Labelled(cluster.Pod.Kind, kinds.GatedLabel), cache.All("AdmissionCheck"), cache.All("MultiKueueConfig")}
	for _, kind := range []schema.GroupVersionKind{cluster.Job, cluster.Set} {
		streams = append(streams, cache.All(kind.Kind))
	}
	f.cache = cache.New(w.Manager, streams...)
	f.cache.Handle = f.sawManager
	f.observer = &observe.Observer{
		Manager: cache.Reader{Cache: f.cache, Index: observe.OwnerIndex, Refuse: w.refuseOnManager},
		Setup:   setup{w.Manager}, Fleet: fleetView{w}, Kinds: kinds.NewTable(kinds.Frameworks()), Memory: memory, Clock: w.Clock, Policy: w.policy,
		Wake: func(refs ...kinds.Ref) { f.enqueue(dispatchQueue, refs...) },
	}
	applier := &apply.Applier{
		Manager:  &cluster.Client{Cluster: w.Manager, Through: w.throughManager, Inspect: w.checkManagerWrite},
		Recorder: recorder{w}, Memory: memory, Clock: w.Clock, Metrics: metrics,
	}
	f.addQueue(dispatchQueue)
	f.dispatch = &dispatch.Reconciler{
		Observer: f.observer, Applier: applier,
		Poke:    func(worker string, ref kinds.Ref) { f.enqueue(worker, ref) },
		Mirror:  func(ref kinds.Ref) { f.enqueue(mirrorQueue, ref) },
		Decided: func(_ kinds.Ref, p plan.Plan) { w.decided(f.now, p) },
	}
	f.drains = &drain.Reconciler{
		Client: applier.Manager, Observer: f.observer, AtOnce: 1, Wake: func(refs ...kinds.Ref) { f.enqueue(dispatchQueue, refs...) },
	}
	f.addQueue(mirrorQueue)
	f.mirror = &mirror.Reconciler{Observer: f.observer, Applier: applier}
	for _, name := range w.names {
		f.addQueue(name)
		f.lanes[name] = &lane.Reconciler{
			Worker: name, Observer: f.observer, Applier: applier,
			Poke: func(ref kinds.Ref) { f.enqueue(dispatchQueue, ref) },
		}
	}
	w.ferry = f
	for _, name := range w.names {
		if w.drains(name) {
			f.drain(name) // in life all are looked at, in a cache
		}
	}
	f.cache.Replay()
	w.Tracef("ferry: started")
}

// StopFerry ends the process. Requests under way may still arrive.
func (w *World) StopFerry() {
	if w.ferry == nil {
		return
	}
	for _, name := range w.names {
		w.disconnect(w.workers[name])
		w.workers[name].lostSince, w.workers[name].seen = w.Clock.Now(), false
	}
	w.ferry.cache.Stop()
	w.ferry = nil
	w.Tracef("ferry: stopped")
}

// Up tells whether Ferry runs.
func (w *World) Up() bool { return w.ferry != nil }

func (f *ferry) addQueue(name string) {
	f.queues[name] = newQueue()
	f.names = append(f.names, name)
}

func (f *ferry) enqueue(queue string, refs ...kinds.Ref) {
	q := f.queues[queue]
	if q == nil {
		return
	}
	for _, ref := range refs {
		q.add(ref)
	}
}

func (f *ferry) wake() {
	for _, q := range f.queues {
		q.wake(f.world.Clock.Now())
	}
}

// sawManager is the wiring of the manager's events: a job's go to its own turn, those of settings to everybody's.
func (f *ferry) sawManager(d cache.Delivery) {
	switch obj := d.Object().(type) {
	case *kueue.Workload:
		f.sawObject(d, workloadRef(obj))
		f.drainAll()
	case *unstructured.Unstructured:
		f.sawObject(d, kinds.RefOf(obj))
	default:
		f.everyJob()
	}
}

// everyJob decides anew about all jobs that are not finished.
func (f *ferry) everyJob() {
	f.enqueueAll(f.dispatch.Unfinished(context.Background()))
}

// workerChanged decides anew about those jobs that a worker matters to, as it comes or goes.
func (f *ferry) workerChanged(name string) {
	f.enqueueAll(f.dispatch.Concerned(context.Background(), name))
}

func (f *ferry) enqueueAll(refs []kinds.Ref) {
	for _, ref := range refs {
		f.enqueue(dispatchQueue, ref)
	}
}

// held lists the jobs that a worker holds copies of.
func (f *ferry) held(name string) []kinds.Ref {
	l := f.world.workers[name].link
	if l == nil {
		return nil
	}
	held := l.cache.Shown("Workload")
	for _, kind := range cluster.JobKinds {
		if l.jobs {
			held = append(held, l.cache.Shown(kind.Kind)...)
		}
	}
	var refs []kinds.Ref
	for _, obj := range held {
		if ref, ours := kinds.CopyOf(obj); ours {
			refs = append(refs, ref)
		}
	}
	return refs
}

func workloadRef(wl *kueue.Workload) kinds.Ref {
	ref, _ := kinds.Owner(wl)
	return ref
}

func (f *ferry) sawObject(d cache.Delivery, ref kinds.Ref) {
	f.observer.Memory.Saw(observe.Manager, ref, d.Object())
	f.enqueue(dispatchQueue, ref)
}

// sawWorker is the wiring of a worker's events.
func (f *ferry) sawWorker(worker string, d cache.Delivery) {
	switch obj := d.Object().(type) {
	case *kueue.LocalQueue:
		if d.Old == nil || d.New == nil {
			f.enqueueAll(f.dispatch.WaitingFor(context.Background(), obj))
		}
	case *metav1.PartialObjectMetadata:
		if ref := (kinds.Ref{Kind: obj.GroupVersionKind().GroupKind().String(), Namespace: obj.Namespace, Name: obj.Name}); f.observer.Submitted(context.Background(), ref) {
			f.enqueue(dispatchQueue, ref)
		}
	default:
		if ref, ours := kinds.CopyOf(d.Object()); ours {
			f.observer.Memory.Saw(worker, ref, d.Object())
			f.enqueue(worker, ref)
			f.enqueue(dispatchQueue, ref)
			return
		}
		f.sawUnmarked(obj)
	}
}

// sawUnmarked is the wiring of what MultiKueue made.
func (f *ferry) sawUnmarked(obj client.Object) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		f.enqueue(dispatchQueue, kinds.RefOf(o))
	case *kueue.Workload:
		if wl := f.world.Manager.Workload(o.Namespace, o.Name); wl != nil {
			f.enqueue(dispatchQueue, workloadRef(wl))
		}
	}
}

// reconcile lets one controller work on one job.
func (f *ferry) reconcile(queue string, ref kinds.Ref) {
	q, before := f.queues[queue], f.now
	f.busy[queue] = append(f.busy[queue], ref)
	var r reconcile.TypedReconciler[kinds.Ref]
	switch queue {
	case dispatchQueue:
		r = f.dispatch
	case mirrorQueue:
		r = f.mirror
	default:
		r = f.lanes[queue]
	}
	f.now = ref
	result, err := r.Reconcile(context.Background(), ref)
	f.now = before
	f.busy[queue] = slices.DeleteFunc(f.busy[queue], func(r kinds.Ref) bool { return r == ref })
	switch {
	case err != nil:
		f.world.Tracef("%s %s: %v", queueName(queue), ref.Name, err)
		q.addAt(ref, f.world.Clock.Now().Add(q.backOff(ref)))
	case result.RequeueAfter > 0:
		delete(q.failed, ref)
		q.addAt(ref, f.world.Clock.Now().Add(result.RequeueAfter))
	default:
		delete(q.failed, ref)
	}
}

func queueName(queue string) string {
	switch queue {
	case dispatchQueue:
		return "dispatch"
	case mirrorQueue:
		return "mirror"
	default:
		return "lane " + queue
	}
}

// nextWake is when something that waits for the time is due; zero when nothing does.
func (f *ferry) nextWake() time.Time {
	var first time.Time
	for _, name := range f.names {
		if at := f.queues[name].next(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

func (w *World) decided(ref kinds.Ref, p plan.Plan) {
	if rules := w.Rules[ref]; len(rules) == 0 || rules[len(rules)-1] != p.Rule {
		w.Rules[ref] = append(rules, p.Rule)
	}
	w.Tracef("dispatch %s: %s, manager %v, workers %v", ref.Name, p.Rule, p.Manager, p.Workers)
}

// Resync lets everything be decided anew, as Ferry does from time to time.
func (w *World) Resync() {
	w.ferry.everyJob()
	for _, name := range w.names {
		w.ferry.enqueue(dispatchQueue, w.ferry.held(name)...)
	}
}

// Repeat tells Ferry every object again, as informers do on a resync.
func (w *World) Repeat() {
	w.ferry.cache.Replay()
	for _, name := range w.names {
		if l := w.workers[name].link; l != nil && !w.workers[name].Cut {
			l.cache.Replay()
		}
	}
}

// recorder implements events.EventRecorder.
type recorder struct{ world *World }

func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	name := ""
	if obj, ok := regarding.(client.Object); ok {
		name = obj.GetName()
	}
	_ = reason
	event := fmt.Sprintf("%s %s %s", kind, name, fmt.Sprintf(note, args...))
	r.world.events = append(r.world.events, event)
	r.world.Tracef("event: %s", event)
}
