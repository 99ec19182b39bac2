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
	told told
	mu   sync.Mutex
	// wrote and deleted are by cluster and job.
	wrote   map[place][]written
	deleted map[types.UID]time.Time
	hosts   map[kinds.Ref]string
	missing byJob[time.Time]
	sought  byJob[plan.Sought]
	gone    byJob[time.Time]
	rests   byJob[rest]
	// failing are the kinds whose jobs fail on a worker one after the other, and kindsFail is told of them.
	failing   map[onKind]*failing
	kindsFail KindsFail
	// claims are since when this process knows of the claim that a job has.
	claims map[kinds.Ref]claim
	// troubles are the writes to workers that do not go through, by what they are.
	troubles byJob[map[string]trouble]
	// facts are when the conditions of copies were first seen to hold; never changed in place.
	facts byJob[map[plan.Fact]time.Time]
	// families are by namespace and name, relatives are the families of jobs.
	families  map[string]*family
	relatives map[kinds.Ref]string
	pruned    map[kinds.Ref]map[types.UID]plan.Pruned
	// asked is what workers said about jobs that do not start; unstarted is where a job was placed that has not run.
	asked     byJob[asked]
	unstarted map[kinds.Ref]string
	// refusals are those of statuses by the manager, by object.
	refusals map[kinds.Ref]map[types.UID]plan.Refusal
	// hashes are those of the specs of jobs' Workloads. What is in it is never changed, only replaced.
	hashes map[kinds.Ref]hashes
	// past are the claims that were seen. What is in it is never changed, only replaced.
	past map[kinds.Ref]map[types.UID]plan.Past
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
		wrote: map[place][]written{}, deleted: map[types.UID]time.Time{},
		hosts: map[kinds.Ref]string{}, families: map[string]*family{}, relatives: map[kinds.Ref]string{}, missing: byJob[time.Time]{}, sought: byJob[plan.Sought]{}, gone: byJob[time.Time]{},
		rests: byJob[rest]{}, failing: map[onKind]*failing{}, claims: map[kinds.Ref]claim{}, refusals: map[kinds.Ref]map[types.UID]plan.Refusal{}, troubles: byJob[map[string]trouble]{},
		pruned: map[kinds.Ref]map[types.UID]plan.Pruned{}, asked: byJob[asked]{}, unstarted: map[kinds.Ref]string{},
		facts: byJob[map[plan.Fact]time.Time]{}, past: map[kinds.Ref]map[types.UID]plan.Past{}, hashes: map[kinds.Ref]hashes{},
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

// Vacated notes that nothing of ours is left on a worker that is given up: no job waits for it to come back.
func (m *Memory) Vacated(worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.hosts, func(_ kinds.Ref, host string) bool { return host == worker })
	maps.DeleteFunc(m.failing, func(at onKind, _ *failing) bool { return at.worker == worker })
}

// Mirrored notes what the manager kept of a status.
func (m *Memory) Mirrored(ref kinds.Ref, uid types.UID, asked, kept map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refusals[ref], uid)
	if kinds.EqualStatus(asked, kept) {
		delete(m.pruned[ref], uid)
		return
	}
	if m.pruned[ref] == nil {
		m.pruned[ref] = map[types.UID]plan.Pruned{}
	}
	m.pruned[ref][uid] = plan.Pruned{Asked: asked, Kept: kept}
}

func (m *Memory) prunedOf(ref kinds.Ref) map[types.UID]plan.Pruned {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.pruned[ref])
}

// Told notes that a job's users were warned.
func (m *Memory) Told(ref kinds.Ref, message string) { m.told.add(ref, message) }

// Forget drops everything about a job that is gone from the manager and from all reachable workers.
func (m *Memory) Forget(ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told.forget(ref)
	delete(m.hosts, ref)
	delete(m.pruned, ref)
	delete(m.claims, ref)
	delete(m.unstarted, ref)
	delete(m.refusals, ref)
	delete(m.asked, ref)
	delete(m.missing, ref)
	delete(m.rests, ref)
	delete(m.troubles, ref)
	delete(m.sought, ref)
	delete(m.facts, ref)
	delete(m.past, ref)
	delete(m.hashes, ref)
	delete(m.gone, ref)
}

// Sought notes what a worker answered when it was asked for a job's copy: its multikueue origin, or "" for none.
func (m *Memory) Sought(worker string, ref kinds.Ref, origin string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sought.put(place{worker, ref}, plan.Sought{At: now, Origin: origin})
}

// soughtOn is the answer while it holds and no copy is seen.
func (m *Memory) soughtOn(worker string, ref kinds.Ref, seen bool, now time.Time) plan.Sought {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	answer, found := m.sought.at(at)
	if found && (seen || now.Sub(answer.At) > soughtFor) {
		m.sought.drop(at)
		return plan.Sought{}
	}
	return answer
}

// JobGone notes that a worker was asked and has no copy of a job.
func (m *Memory) JobGone(worker string, ref kinds.Ref, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone.put(place{worker, ref}, now)
}

// jobGone is that answer while it holds and no copy is seen.
func (m *Memory) jobGone(worker string, ref kinds.Ref, seen bool, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	answer, found := m.gone.at(at)
	if found && (seen || now.Sub(answer) > soughtFor) {
		m.gone.drop(at)
		return time.Time{}
	}
	return answer
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

// pastOf notes who has the claim on each Workload, for which reservation, and returns all that was seen.
func (m *Memory) pastOf(ref kinds.Ref, wls []*kueue.Workload) map[types.UID]plan.Past {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, wl := range wls {
		past, known := m.past[ref][wl.UID]
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
		all := maps.Clone(m.past[ref])
		if all == nil {
			all = map[types.UID]plan.Past{}
		}
		all[wl.UID] = now
		m.past[ref] = all
	}
	return m.past[ref]
}

// over notes that a job has ended: nothing of it is left to wait for.
func (m *Memory) over(ref kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hosts, ref)
}

func (m *Memory) missingSince(ref kinds.Ref, worker string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := place{worker, ref}
	since, found := m.missing.at(at)
	if !found {
		since = now
		m.missing.put(at, since)
	}
	return since
}

func (m *Memory) present(ref kinds.Ref, worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missing.drop(place{worker, ref})
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
