package observe

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	// A worker that refused a job's copy is not asked again for blockedFor, and
	// twice as long after each further refusal, up to blockedMost.
	blockedFor  = 30 * time.Second
	blockedMost = 16 * blockedFor
)

// Memory is what this process knows and no cache shows yet, or any more: what
// it just wrote, and since when something has been missing. Losing it, as a
// restart does, costs a request or a wait, never correctness.
type Memory struct {
	mu sync.Mutex
	// wrote and deleted are by cluster and job.
	wrote   map[place][]written
	deleted map[types.UID]time.Time
	hosts   map[kinds.Ref]string
	missing map[place]time.Time
	blocks  map[place]block
	pruned  map[kinds.Ref]*plan.Pruned
}

type place struct {
	cluster string
	ref     kinds.Ref
}

type written struct {
	obj client.Object
	at  time.Time
}

type block struct {
	why   string
	until time.Time
	lasts time.Duration
}

// NewMemory returns an empty memory.
func NewMemory() *Memory {
	return &Memory{
		wrote: map[place][]written{}, deleted: map[types.UID]time.Time{},
		hosts: map[kinds.Ref]string{}, missing: map[place]time.Time{}, blocks: map[place]block{},
		pruned: map[kinds.Ref]*plan.Pruned{},
	}
}

// Wrote notes what the API server answered to a write.
func (m *Memory) Wrote(cluster string, ref kinds.Ref, obj client.Object, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{cluster, ref}
	m.wrote[at] = append(slices.DeleteFunc(m.wrote[at], func(w written) bool { return sameObject(w.obj, obj) }), written{obj, now})
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
}

// Block keeps a worker out of a job's nomination for a while.
func (m *Memory) Block(worker string, ref kinds.Ref, why string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	lasts := min(max(2*m.blocks[at].lasts, blockedFor), blockedMost)
	m.blocks[at] = block{why, now.Add(lasts), lasts}
}

// Mirrored notes what the manager kept of a status.
func (m *Memory) Mirrored(ref kinds.Ref, asked, kept map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kinds.EqualStatus(asked, kept) {
		delete(m.pruned, ref)
		return
	}
	m.pruned[ref] = &plan.Pruned{Asked: asked, Kept: kept}
}

func (m *Memory) prunedOf(ref kinds.Ref) *plan.Pruned {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pruned[ref]
}

// Forget drops everything about a job that is gone from the manager and from all reachable workers.
func (m *Memory) Forget(ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hosts, ref)
	delete(m.pruned, ref)
	for at := range m.missing {
		if at.ref == ref {
			delete(m.missing, at)
		}
	}
	for at := range m.blocks {
		if at.ref == ref {
			delete(m.blocks, at)
		}
	}
}

func (m *Memory) blocked(worker string, ref kinds.Ref, now time.Time) (block, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	b, found := m.blocks[at]
	if !found || !now.Before(b.until) {
		// What is over is kept for its length: the next one lasts longer.
		return block{}, false
	}
	return b, true
}

// host returns the last worker seen to hold the claim.
func (m *Memory) host(ref kinds.Ref, claim string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if claim != "" {
		m.hosts[ref] = claim
	}
	return m.hosts[ref]
}

func (m *Memory) missingSince(ref kinds.Ref, worker string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	if _, found := m.missing[at]; !found {
		m.missing[at] = now
	}
	return m.missing[at]
}

func (m *Memory) present(ref kinds.Ref, worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, place{worker, ref})
}

// job returns the newer of what the cache shows and what was written; cached may be nil.
func (m *Memory) job(cluster string, ref kinds.Ref, cached *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	m.mu.Lock()
	defer m.mu.Unlock()
	var shown []client.Object
	if cached != nil {
		shown = append(shown, cached)
	}
	m.expire(place{cluster, ref}, isJob, shown, now)
	for _, w := range m.wrote[place{cluster, ref}] {
		job, ok := w.obj.(*unstructured.Unstructured)
		if ok && (cached == nil || newer(job, cached)) {
			cached = job
		}
	}
	if cached != nil && m.going(cached, now) {
		cached = cached.DeepCopy()
		cached.SetDeletionTimestamp(&metav1.Time{Time: now})
	}
	return cached
}

// workloads is like job, for all Workloads of a job.
func (m *Memory) workloads(cluster string, ref kinds.Ref, cached []*kueue.Workload, now time.Time) []*kueue.Workload {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire(place{cluster, ref}, isWorkload, objects(cached), now)
	for _, w := range m.wrote[place{cluster, ref}] {
		wl, ok := w.obj.(*kueue.Workload)
		if !ok {
			continue
		}
		i := slices.IndexFunc(cached, func(c *kueue.Workload) bool { return c.Name == wl.Name })
		switch {
		case i < 0:
			cached = append(cached, wl)
		case newer(wl, cached[i]):
			cached[i] = wl
		}
	}
	for i, wl := range cached {
		if m.going(wl, now) {
			cached[i] = wl.DeepCopy()
			cached[i].DeletionTimestamp = &metav1.Time{Time: now}
		}
	}
	return cached
}

func (m *Memory) going(obj metav1.Object, now time.Time) bool {
	at, deleted := m.deleted[obj.GetUID()]
	return deleted && now.Sub(at) <= deletedFor && obj.GetDeletionTimestamp().IsZero()
}

// expire forgets old writes of one type, but for those of which the cache shows an earlier
// version of the same object: however long ago, that version is known to be outdated.
func (m *Memory) expire(at place, typed func(client.Object) bool, cached []client.Object, now time.Time) {
	m.keep(at, slices.DeleteFunc(m.wrote[at], func(w written) bool {
		outdated := func(c client.Object) bool {
			return sameObject(w.obj, c) && w.obj.GetUID() == c.GetUID() && newer(w.obj, c)
		}
		return typed(w.obj) && now.Sub(w.at) > remembered && !slices.ContainsFunc(cached, outdated)
	}))
}

func isJob(obj client.Object) bool {
	_, ok := obj.(*unstructured.Unstructured)
	return ok
}

func isWorkload(obj client.Object) bool { return !isJob(obj) }

func objects(wls []*kueue.Workload) []client.Object {
	list := make([]client.Object, len(wls))
	for i, wl := range wls {
		list[i] = wl
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

// sameObject compares type and name; an object that was made anew under its name is the same place.
func sameObject(a, b client.Object) bool {
	_, x := a.(*kueue.Workload)
	_, y := b.(*kueue.Workload)
	return x == y && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// newer tells whether a is a later version than b. Versions of one resource are
// ordered numbers (Kubernetes 1.35 and later say so, earlier ones behaved so).
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
