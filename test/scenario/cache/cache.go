// Package cache is a lagging view of a cluster: events come one at a time, when the scheduler says so.
package cache

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/scenario/cluster"
)

// Stream is one informer: some objects of a cluster in some form.
type Stream struct {
	Name string
	// Form is how the stream shows an object; nil for those that it leaves out.
	Form func(client.Object) client.Object
}

// All shows every object of a kind as it is.
func All(kind string) Stream {
	return Stream{kind, func(obj client.Object) client.Object {
		if cluster.KeyOf(obj).Kind != kind {
			return nil
		}
		return obj
	}}
}

// Ours shows those objects of a kind that carry an origin label.
func Ours(kind, origin string) Stream {
	return Stream{kind, func(obj client.Object) client.Object {
		if cluster.KeyOf(obj).Kind != kind || obj.GetLabels()[kueue.MultiKueueOriginLabel] != origin {
			return nil
		}
		return obj
	}}
}

// Lean shows the Workloads of a stream as Ferry's caches hold them: without what it takes out of them.
func (s Stream) Lean(strip func(*kueue.Workload)) Stream {
	return Stream{s.Name, func(obj client.Object) client.Object {
		wl, _ := s.Form(obj).(*kueue.Workload)
		if wl == nil {
			return nil
		}
		wl = wl.DeepCopy()
		strip(wl)
		return wl
	}}
}

// Labelled shows those objects of a kind that have a label.
func Labelled(kind, label string) Stream {
	return Stream{kind, func(obj client.Object) client.Object {
		if cluster.KeyOf(obj).Kind != kind || obj.GetLabels()[label] == "" {
			return nil
		}
		return obj
	}}
}

// Names shows the bare metadata of all objects of a kind.
func Names(kind schema.GroupVersionKind) Stream {
	return Stream{NamesOf(kind.Kind), func(obj client.Object) client.Object {
		if cluster.KeyOf(obj).Kind != kind.Kind {
			return nil
		}
		bare := &metav1.PartialObjectMetadata{}
		bare.SetGroupVersionKind(kind)
		bare.Namespace, bare.Name, bare.UID = obj.GetNamespace(), obj.GetName(), obj.GetUID()
		bare.ResourceVersion, bare.DeletionTimestamp = obj.GetResourceVersion(), obj.GetDeletionTimestamp()
		if origin := obj.GetLabels()[kueue.MultiKueueOriginLabel]; origin != "" {
			bare.Labels = map[string]string{kueue.MultiKueueOriginLabel: origin}
		}
		return bare
	}}
}

// NamesOf is the name of the stream that Names makes.
func NamesOf(kind string) string { return kind + " names" }

// Delivery is a change that a cache came to show; New is nil when the object went.
type Delivery struct {
	Stream   string
	Old, New client.Object
}

// Object is the object that the delivery is about.
func (d Delivery) Object() client.Object {
	if d.New != nil {
		return d.New
	}
	return d.Old
}

type slot struct {
	stream int
	key    cluster.Key
}

// Cache shows a cluster as of some time ago, another time for each object.
type Cache struct {
	streams []Stream
	shown   []map[cluster.Key]client.Object
	pending map[slot][]cluster.Event
	// order keeps the slots with pending events in the order of their first one.
	order   []slot
	stopped bool
	// Handle is told every delivery.
	Handle func(Delivery)
}

// New returns a cache that begins with a list of everything there is now. Its
// objects count as delivered; see Replay.
func New(source *cluster.Cluster, streams ...Stream) *Cache {
	c := &Cache{streams: streams, pending: map[slot][]cluster.Event{}, Handle: func(Delivery) {}}
	for i := range streams {
		c.shown = append(c.shown, map[cluster.Key]client.Object{})
		for _, kind := range []string{"Workload", cluster.Job.Kind, cluster.Set.Kind, cluster.Pod.Kind, "LocalQueue", "AdmissionCheck", "MultiKueueConfig"} {
			for _, obj := range source.List(kind) {
				if form := streams[i].Form(obj); form != nil {
					c.shown[i][cluster.KeyOf(obj)] = form
				}
			}
		}
	}
	source.Watch(c.note)
	return c
}

// Stop ends the cache: nothing more is delivered.
func (c *Cache) Stop() { c.stopped, c.pending, c.order = true, nil, nil }

func (c *Cache) note(e cluster.Event) {
	if c.stopped {
		return
	}
	for i, s := range c.streams {
		if form(s, e.Old) == nil && form(s, e.New) == nil {
			continue
		}
		at := slot{i, e.Key}
		if len(c.pending[at]) == 0 {
			c.order = append(c.order, at)
		}
		c.pending[at] = append(c.pending[at], e)
	}
}

func form(s Stream, obj client.Object) client.Object {
	if obj == nil {
		return nil
	}
	return s.Form(obj)
}

// Pending is how many objects have undelivered events.
func (c *Cache) Pending() int { return len(c.order) }

// PendingStream names the stream of the i-th pending object.
func (c *Cache) PendingStream(i int) string { return c.streams[c.order[i].stream].Name }

// Knows tells whether nothing is pending in any stream about what is asked for by its key.
func (c *Cache) Knows(about func(cluster.Key) bool) bool {
	return !slices.ContainsFunc(c.order, func(at slot) bool { return about(at.key) })
}

// Deliver shows the next event of the i-th pending object. An informer may
// also skip versions, as after a relist: skip jumps to the last one.
func (c *Cache) Deliver(i int, skip bool) Delivery {
	at := c.order[i]
	events := c.pending[at]
	n := 1
	if skip {
		n = len(events)
	}
	e := events[n-1]
	if c.pending[at] = events[n:]; len(c.pending[at]) == 0 {
		delete(c.pending, at)
		c.order = slices.Delete(c.order, i, i+1)
	}
	d := Delivery{Stream: c.streams[at.stream].Name, Old: c.shown[at.stream][at.key], New: form(c.streams[at.stream], e.New)}
	if d.New == nil {
		delete(c.shown[at.stream], at.key)
		if d.Old = form(c.streams[at.stream], e.Old); d.Old == nil {
			// It left the stream by a change of its labels.
			d.Old = e.Old
		}
	} else {
		c.shown[at.stream][at.key] = d.New
	}
	c.Handle(d)
	return d
}

// Replay tells every shown object again, as after a start or a resync.
func (c *Cache) Replay() {
	for i, s := range c.streams {
		for _, obj := range sorted(c.shown[i]) {
			c.Handle(Delivery{Stream: s.Name, Old: obj, New: obj})
		}
	}
}

func sorted(objects map[cluster.Key]client.Object) []client.Object {
	all := make([]client.Object, 0, len(objects))
	for _, obj := range objects {
		all = append(all, obj)
	}
	slices.SortFunc(all, func(a, b client.Object) int { return cluster.Compare(cluster.KeyOf(a), cluster.KeyOf(b)) })
	return all
}

// Find gives what a stream shows of one object, to be read only; nil when it shows none.
func (c *Cache) Find(stream string, key cluster.Key) client.Object {
	for i, s := range c.streams {
		if s.Name == stream {
			return c.shown[i][key]
		}
	}
	return nil
}

// Shown lists what a stream shows, to be read only.
func (c *Cache) Shown(stream string) []client.Object {
	for i, s := range c.streams {
		if s.Name == stream {
			return sorted(c.shown[i])
		}
	}
	return nil
}
