package observe

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// Manager is the name of the manager where a worker's name could stand too; no object can have it.
const Manager = ""

const (
	// remembered bounds how long a write is believed that no cache ever shows;
	// caches that lag are seconds behind, seldom a minute.
	remembered = 2 * time.Minute
	// deletedFor is how long an accepted deletion is believed to be under way.
	deletedFor = 30 * time.Second
	// choosesFor is how long the first of a family may take to get a worker.
	choosesFor = 30 * time.Second
	// soughtFor is how long the answer of a worker that was asked for a copy holds.
	soughtFor = time.Minute
)

// Memory is what this process knows and no cache shows yet, or any more: what
// it just wrote, and since when something has been missing. Losing it, as a
// restart does, costs a request or a wait, never correctness.
type Memory struct {
	mu   sync.Mutex
	jobs map[kinds.Ref]*known
	// wrote is what caches do not show yet, deleted what they still show. Both expire by themselves.
	wrote   map[place][]written
	deleted map[types.UID]time.Time
	// failing are the kinds whose jobs fail on a worker one after the other, and kindsFail is told of them.
	failing   map[onKind]*failing
	kindsFail KindsFail
	// families are by namespace and name, relatives are the families of jobs.
	families  map[string]*family
	relatives map[kinds.Ref]string
	// moves are the jobs that are to leave workers which are being drained.
	moves map[string]map[kinds.Ref]bool

	// Capacity is what the workers' queues have; it has a lock of its own.
	Capacity *Capacity
}

type place struct {
	cluster string
	ref     kinds.Ref
}

type written struct {
	obj client.Object
	at  time.Time
}

// NewMemory returns an empty memory.
func NewMemory() *Memory {
	return &Memory{
		jobs: map[kinds.Ref]*known{}, wrote: map[place][]written{}, deleted: map[types.UID]time.Time{}, failing: map[onKind]*failing{},
		families: map[string]*family{}, relatives: map[kinds.Ref]string{}, moves: map[string]map[kinds.Ref]bool{}, Capacity: NewCapacity(),
	}
}

// Wrote notes what the API server answered to a write.
func (m *Memory) Wrote(cluster string, ref kinds.Ref, obj client.Object, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{cluster, ref}
	m.wrote[at] = append(slices.DeleteFunc(m.wrote[at], func(w written) bool { return sameObject(w.obj, obj) }), written{obj, now})
	if wl, ok := obj.(*kueue.Workload); ok && cluster == Manager {
		m.Capacity.Offered(wl, now)
	}
}

// Deleted notes that an object's deletion was accepted.
func (m *Memory) Deleted(uid types.UID, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for old, at := range m.deleted {
		if now.Sub(at) > deletedFor {
			delete(m.deleted, old)
		}
	}
	m.deleted[uid] = now
}

// Gone notes that an object is not there, whatever was written to it before.
func (m *Memory) Gone(cluster string, ref kinds.Ref, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{cluster, ref}
	m.keep(at, slices.DeleteFunc(m.wrote[at], func(w written) bool { return w.obj.GetUID() == uid }))
}

// Saw notes that a cluster's cache has come to show obj, or to show it no more.
func (m *Memory) Saw(cluster string, ref kinds.Ref, obj client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{cluster, ref}
	m.keep(at, slices.DeleteFunc(m.wrote[at], func(w written) bool {
		return sameObject(w.obj, obj) && !newer(w.obj, obj)
	}))
}

// Lost drops what was written to a worker when the connection to it ends: the
// caches of the next connection are read after those writes.
func (m *Memory) Lost(worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := range m.wrote {
		if at.cluster == worker {
			delete(m.wrote, at)
		}
	}
	m.Capacity.Lost(worker)
}

// Vacated notes that nothing of ours is left on a worker that is given up: no job waits for it to come back.
func (m *Memory) Vacated(worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.jobs {
		if k.host == worker {
			k.host = ""
		}
	}
	maps.DeleteFunc(m.failing, func(at onKind, _ *failing) bool { return at.worker == worker })
}

// Mirrored notes what the manager kept of a status.
func (m *Memory) Mirrored(ref kinds.Ref, uid types.UID, asked, kept map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.note(ref)
	delete(k.refusals, uid)
	if kinds.EqualStatus(asked, kept) {
		delete(k.pruned, uid)
		return
	}
	if k.pruned == nil {
		k.pruned = map[types.UID]plan.Pruned{}
	}
	k.pruned[uid] = plan.Pruned{Asked: asked, Kept: kept}
}

func (m *Memory) prunedOf(ref kinds.Ref) map[types.UID]plan.Pruned {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.read(ref).pruned)
}

// Forget drops everything about a job that is gone from the manager and from all reachable workers.
func (m *Memory) Forget(ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, ref)
}

// Sought notes what a worker answered when it was asked for a job's copy: its multikueue origin, or "" for none.
func (m *Memory) Sought(worker string, ref kinds.Ref, origin string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteOn(worker, ref).sought = plan.Sought{At: now, Origin: origin}
}

// soughtOn is the answer while it holds and no copy is seen.
func (m *Memory) soughtOn(worker string, ref kinds.Ref, seen bool, now time.Time) plan.Sought {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.readOn(worker, ref)
	if t == nil {
		return plan.Sought{}
	}
	if seen || now.Sub(t.sought.At) > soughtFor {
		t.sought = plan.Sought{}
		m.tidy(worker, ref)
	}
	return t.sought
}

// JobGone notes that a worker was asked and has no copy of a job.
func (m *Memory) JobGone(worker string, ref kinds.Ref, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteOn(worker, ref).gone = now
}

// jobGone is that answer while it holds and no copy is seen.
func (m *Memory) jobGone(worker string, ref kinds.Ref, seen bool, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.readOn(worker, ref)
	if t == nil {
		return time.Time{}
	}
	if seen || now.Sub(t.gone) > soughtFor {
		t.gone = time.Time{}
		m.tidy(worker, ref)
	}
	return t.gone
}

// host returns the last worker seen to hold the claim.
func (m *Memory) host(ref kinds.Ref, claim string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if claim != "" {
		m.note(ref).host = claim
	}
	return m.read(ref).host
}

// pastOf notes who has the claim on each Workload, for which reservation, and returns all that was seen.
func (m *Memory) pastOf(ref kinds.Ref, wls []*kueue.Workload) map[types.UID]plan.Past {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(wls) == 0 {
		return m.read(ref).past
	}
	k := m.note(ref)
	for _, wl := range wls {
		past, known := k.past[wl.UID]
		reservation := plan.Reservation(wl)
		claimed := wl.Status.ClusterName != nil && reservation != ""
		if known && (!claimed || past.By[reservation] != "") {
			continue
		}
		now := plan.Past{From: past.From, By: maps.Clone(past.By)}
		if !known {
			now.From = plan.Evictions(wl)
		}
		if claimed {
			if now.By == nil {
				now.By = map[string]string{}
			}
			now.By[reservation] = *wl.Status.ClusterName
		}
		all := maps.Clone(k.past)
		if all == nil {
			all = map[types.UID]plan.Past{}
		}
		all[wl.UID] = now
		k.past = all
	}
	return k.past
}

// over notes that a job has ended: nothing of it is left to wait for.
func (m *Memory) over(ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.jobs[ref]; k != nil {
		k.host = ""
	}
}

func (m *Memory) missingSince(ref kinds.Ref, worker string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.noteOn(worker, ref)
	if t.missing.IsZero() {
		t.missing = now
	}
	return t.missing
}

func (m *Memory) present(ref kinds.Ref, worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.readOn(worker, ref); t != nil {
		t.missing = time.Time{}
		m.tidy(worker, ref)
	}
}

// recall returns the newer of what a cache shows and what was written, of the
// job's objects of one kind.
func recall[T client.Object](m *Memory, cluster string, ref kinds.Ref, kind schema.GroupKind, cached []T, now time.Time) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{cluster, ref}
	if len(m.wrote[at]) > 0 {
		m.expire(at, kind, objects(cached), now)
	}
	for _, w := range m.wrote[at] {
		if kindOf(w.obj) != kind {
			continue
		}
		obj := w.obj.(T)
		i := slices.IndexFunc(cached, func(c T) bool { return c.GetName() == obj.GetName() })
		switch {
		case i < 0:
			cached = append(cached, obj)
		case newer(obj, cached[i]):
			cached[i] = obj
		}
	}
	for i, obj := range cached {
		if m.going(obj, now) {
			cached[i] = obj.DeepCopyObject().(T)
			cached[i].SetDeletionTimestamp(&metav1.Time{Time: now})
		}
	}
	slices.SortFunc(cached, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return cached
}

func (m *Memory) going(obj metav1.Object, now time.Time) bool {
	at, deleted := m.deleted[obj.GetUID()]
	return deleted && now.Sub(at) <= deletedFor && obj.GetDeletionTimestamp().IsZero()
}

// expire forgets old writes of one type, but for those of which the cache shows an earlier
// version of the same object: however long ago, that version is known to be outdated.
func (m *Memory) expire(at place, kind schema.GroupKind, cached []client.Object, now time.Time) {
	m.keep(at, slices.DeleteFunc(m.wrote[at], func(w written) bool {
		outdated := func(c client.Object) bool {
			return sameObject(w.obj, c) && w.obj.GetUID() == c.GetUID() && newer(w.obj, c)
		}
		return kindOf(w.obj) == kind && now.Sub(w.at) > remembered && !slices.ContainsFunc(cached, outdated)
	}))
}

func objects[T client.Object](cached []T) []client.Object {
	list := make([]client.Object, len(cached))
	for i, obj := range cached {
		list[i] = obj
	}
	return list
}

func (m *Memory) keep(at place, w []written) {
	if len(w) == 0 {
		delete(m.wrote, at)
		return
	}
	m.wrote[at] = w
}

// sameObject compares kind and name; an object that was made anew under its name is the same place.
func sameObject(a, b client.Object) bool {
	return kindOf(a) == kindOf(b) && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// kindOf: Workloads are typed, and all else is unstructured and says what it is.
func kindOf(obj client.Object) schema.GroupKind {
	if job, is := obj.(*unstructured.Unstructured); is {
		return job.GroupVersionKind().GroupKind()
	}
	return workloadKind.GroupKind()
}

// newer tells whether a is a later version than b. Versions of one resource are
// ordered numbers (Kubernetes 1.35 and later say so, earlier ones behaved so).
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
