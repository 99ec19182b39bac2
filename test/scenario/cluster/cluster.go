// Package cluster is an API server in memory: just enough of one for what Ferry and Kueue write, with Kueue's and Kubernetes' validation of it.
package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Key is where an object is kept.
type Key struct{ Kind, Namespace, Name string }

func (k Key) String() string { return k.Kind + " " + k.Name }

// Compare orders keys by kind, namespace and name.
func Compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Event is one change of one object; New is nil when it is gone, Old when it is new.
type Event struct {
	Key      Key
	Old, New client.Object
}

// Cluster holds objects. Stored objects are never changed in place, so they may be shared.
type Cluster struct {
	Name  string
	Clock clock.PassiveClock
	// Violation is told when something illegal is tried.
	Violation func(format string, args ...any)
	// NoPods is why no pods can be made here, which is in an event about each Job; empty while they can.
	NoPods string

	objects  map[Key]client.Object
	owned    map[Key]map[string]fieldSet
	orphans  []types.UID
	versions int64
	uids     int
	watchers []func(Event)
}

// New returns an empty cluster, whose versions start at a number of its own.
func New(name string, firstVersion int64, clk clock.PassiveClock, violation func(string, ...any)) *Cluster {
	return &Cluster{
		Name: name, Clock: clk, Violation: violation, versions: firstVersion,
		objects: map[Key]client.Object{}, owned: map[Key]map[string]fieldSet{},
	}
}

// Watch calls f on every change, in order.
func (c *Cluster) Watch(f func(Event)) { c.watchers = append(c.watchers, f) }

// Now is the time as the API stores it: whole seconds.
func (c *Cluster) Now() metav1.Time { return metav1.NewTime(c.Clock.Now().Truncate(time.Second)) }

// KeyOf is the key of an object.
func KeyOf(obj client.Object) Key {
	return Key{kindOf(obj), obj.GetNamespace(), obj.GetName()}
}

func kindOf(obj client.Object) string {
	switch o := obj.(type) {
	case *kueue.Workload:
		return "Workload"
	case *kueue.LocalQueue:
		return "LocalQueue"
	case *kueue.MultiKueueCluster:
		return "MultiKueueCluster"
	case *kueue.AdmissionCheck:
		return "AdmissionCheck"
	case *kueue.MultiKueueConfig:
		return "MultiKueueConfig"
	case *unstructured.Unstructured:
		return o.GetKind()
	case *metav1.PartialObjectMetadata:
		return o.Kind
	default:
		panic(fmt.Sprintf("the model has no %T", obj))
	}
}

// Get returns a stored object, to be read only; nil when there is none.
func (c *Cluster) Get(key Key) client.Object {
	obj, found := c.objects[key]
	if !found {
		return nil
	}
	return obj
}

// Workload returns a stored Workload, to be read only; nil when there is none.
func (c *Cluster) Workload(namespace, name string) *kueue.Workload {
	wl, _ := c.objects[Key{"Workload", namespace, name}].(*kueue.Workload)
	return wl
}

// Job returns the stored job of a name, of whatever kind, to be read only; nil when there is none.
func (c *Cluster) Job(namespace, name string) *unstructured.Unstructured {
	for _, kind := range JobKinds {
		if job, found := c.objects[Key{kind.Kind, namespace, name}].(*unstructured.Unstructured); found && !IsPart(job) {
			return job
		}
	}
	return nil
}

// Jobs returns the stored jobs of all kinds in a fixed order, to be read only.
func (c *Cluster) Jobs() []*unstructured.Unstructured {
	var jobs []*unstructured.Unstructured
	for _, kind := range JobKinds {
		for _, obj := range c.List(kind.Kind) {
			if !IsPart(obj) {
				jobs = append(jobs, obj.(*unstructured.Unstructured))
			}
		}
	}
	return jobs
}

// List returns the stored objects of a kind in a fixed order, to be read only.
func (c *Cluster) List(kind string) []client.Object {
	var objects []client.Object
	for key, obj := range c.objects {
		if key.Kind == kind {
			objects = append(objects, obj)
		}
	}
	slices.SortFunc(objects, func(a, b client.Object) int { return Compare(KeyOf(a), KeyOf(b)) })
	return objects
}

// Create stores a new object and returns it with what the server adds.
func (c *Cluster) Create(obj client.Object) (client.Object, error) {
	key := KeyOf(obj)
	if c.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(resource(key), key.Name)
	}
	made := obj.DeepCopyObject().(client.Object)
	c.uids++
	made.SetUID(types.UID(fmt.Sprintf("%s-%d", cmp.Or(c.Name, "manager"), c.uids)))
	made.SetCreationTimestamp(c.Now())
	made.SetGeneration(1)
	clearStatus(made)
	c.store(nil, made)
	return made, nil
}

func clearStatus(obj client.Object) {
	switch o := obj.(type) {
	case *kueue.Workload:
		o.Status = kueue.WorkloadStatus{}
	case *unstructured.Unstructured:
		delete(o.Object, "status")
	}
}

// Edit changes a stored object, if it is there. A Job's status is checked like the API server does.
func (c *Cluster) Edit(key Key, change func(client.Object)) {
	old := c.objects[key]
	if old == nil {
		return
	}
	next := old.DeepCopyObject().(client.Object)
	change(next)
	if err := c.replace(old, next); err != nil {
		c.Violation("%s: an edit of %s was refused: %v", c.Name, key, err)
	}
}

// replace validates and stores a successor of old.
func (c *Cluster) replace(old, next client.Object) error {
	if equality.Semantic.DeepEqual(old, next) {
		return nil
	}
	if errs := validate(old, next); len(errs) > 0 {
		return invalid(KeyOf(old), errs)
	}
	if specChanged(old, next) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		c.drop(old)
		return nil
	}
	c.store(old, next)
	return nil
}

func (c *Cluster) store(old, next client.Object) {
	c.versions++
	next.SetResourceVersion(strconv.FormatInt(c.versions, 10))
	key := KeyOf(next)
	c.objects[key] = next
	c.tell(Event{key, old, next})
}

// Remove deletes an object; its dependents follow in Collect. One with a finalizer is only marked.
func (c *Cluster) Remove(key Key) {
	old := c.objects[key]
	if old == nil {
		return
	}
	if len(old.GetFinalizers()) == 0 {
		c.drop(old)
		return
	}
	if old.GetDeletionTimestamp() == nil {
		now := c.Now()
		c.Edit(key, func(o client.Object) { o.SetDeletionTimestamp(&now) })
	}
}

func (c *Cluster) drop(old client.Object) {
	key := KeyOf(old)
	delete(c.objects, key)
	delete(c.owned, key)
	c.orphans = append(c.orphans, old.GetUID())
	c.versions++
	last := old.DeepCopyObject().(client.Object)
	last.SetResourceVersion(strconv.FormatInt(c.versions, 10))
	c.tell(Event{key, last, nil})
}

// Version counts the changes.
func (c *Cluster) Version() int64 { return c.versions }

// Garbage tells whether objects wait for Collect.
func (c *Cluster) Garbage() bool { return len(c.orphans) > 0 }

// Collect deletes the dependents of one deleted object, as Kubernetes' garbage collector does some time later.
// Those that somebody else owns too only lose that owner.
func (c *Cluster) Collect() {
	if !c.Garbage() {
		return
	}
	owner := c.orphans[0]
	c.orphans = c.orphans[1:]
	c.versions++
	isGone := func(r metav1.OwnerReference) bool { return r.UID == owner }
	for _, kind := range []string{"Workload", Job.Kind, Set.Kind, Pod.Kind} {
		for _, obj := range c.List(kind) {
			owners := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()), isGone)
			switch {
			case len(owners) == len(obj.GetOwnerReferences()):
			case len(owners) == 0:
				c.Remove(KeyOf(obj))
			default:
				c.Edit(KeyOf(obj), func(o client.Object) { o.SetOwnerReferences(owners) })
			}
		}
	}
}

func (c *Cluster) tell(e Event) {
	for _, watcher := range c.watchers {
		watcher(e)
	}
}

func specChanged(old, next client.Object) bool {
	switch o := old.(type) {
	case *kueue.Workload:
		return !equality.Semantic.DeepEqual(o.Spec, next.(*kueue.Workload).Spec)
	case *unstructured.Unstructured:
		return !equality.Semantic.DeepEqual(o.Object["spec"], next.(*unstructured.Unstructured).Object["spec"])
	default:
		return true
	}
}

func resource(key Key) schema.GroupResource {
	if r, found := resources[key.Kind]; found {
		return r
	}
	return schema.GroupResource{Group: kueue.SchemeGroupVersion.Group, Resource: key.Kind}
}
