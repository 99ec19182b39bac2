package world

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cache"
	"ferry.dev/ferry/test/scenario/cluster"
)

var (
	errGone     = errors.New("the connection to the worker is gone")
	errNoAnswer = errors.New("the worker did not answer in time")
)

// link is Ferry's connection to one worker; it implements fleet.Conn.
type link struct {
	world  *World
	worker *Worker
	cache  *cache.Cache
	dead   bool
	// jobs is set once the informers of the job kinds have synced, which may be
	// after the worker counts as connected.
	jobs bool
}

func (l *link) Reader() client.Reader {
	return cache.Reader{Cache: l.cache, Refuse: l.refuse}
}

// Find implements fleet.Conn.
func (l *link) Find(gvk schema.GroupVersionKind, key string) (client.Object, error) {
	return l.find(gvk.Kind, gvk.Kind, key)
}

// FindName implements fleet.Conn.
func (l *link) FindName(gvk schema.GroupVersionKind, key string) (client.Object, error) {
	return l.find(gvk.Kind, cache.NamesOf(gvk.Kind), key)
}

func (l *link) find(kind, stream, key string) (client.Object, error) {
	if err := l.refuse(kind); err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(key, "/")
	return l.cache.Find(stream, cluster.Key{Kind: kind, Namespace: namespace, Name: name}), nil
}

// FindAll implements fleet.Conn.
func (l *link) FindAll(gvk schema.GroupVersionKind, job kinds.Ref, to []client.Object) ([]client.Object, error) {
	if err := l.refuse(gvk.Kind); err != nil {
		return to, err
	}
	for _, obj := range l.cache.Shown(gvk.Kind) {
		if of, ours := kinds.CopyOf(obj); ours && of == job {
			to = append(to, obj)
		}
	}
	return to, nil
}

func (l *link) refuse(kind string) error {
	if l.dead {
		return errGone
	}
	if gvk := dispatched(kind); gvk != nil && !l.jobs {
		return &fleet.NotServedError{Kind: *gvk, Why: "its informer has not synced"}
	}
	return nil
}

// dispatched is a kind that Ferry dispatches; nil for what every worker serves.
func dispatched(kind string) *schema.GroupVersionKind {
	for i := range cluster.JobKinds {
		if cluster.JobKinds[i].Kind == kind {
			return &cluster.JobKinds[i]
		}
	}
	return nil
}

func (l *link) Serves(gvk schema.GroupVersionKind) (bool, string) {
	if !l.jobs {
		return false, gvk.Kind + " cannot be read yet"
	}
	return true, ""
}

func (l *link) Client() client.Client {
	return &cluster.Client{Cluster: l.worker.Cluster, Through: l.through, Inspect: func(w cluster.Write) { l.world.checkWorkerWrite(l.worker, w) }}
}

// through carries a request to the worker, or does not.
func (l *link) through(verb string, key cluster.Key, run func() error) error {
	if l.dead {
		return errGone
	}
	l.world.Writes++
	return l.world.carry(l.worker, verb, key, run)
}

// fleetView implements fleet.View for one life of Ferry.
type fleetView struct{ world *World }

func (f fleetView) Workers() []string {
	names := slices.Clone(f.world.configured)
	slices.Sort(names)
	return names
}

func (f fleetView) Status(name string) fleet.Status {
	w := f.world.workers[name]
	if w == nil || !slices.Contains(f.world.configured, name) {
		return fleet.Status{Reach: fleet.Unknown, Seen: w != nil && w.seen}
	}
	if w.link != nil {
		return fleet.Status{Reach: fleet.Connected, Seen: true, Leaving: w.leaving}
	}
	return fleet.Status{Reach: fleet.Lost, LostSince: w.lostSince, Seen: w.seen, Leaving: w.leaving}
}

func (f fleetView) Conn(name string) (fleet.Conn, bool) {
	w := f.world.workers[name]
	if w == nil || w.link == nil || !slices.Contains(f.world.configured, name) {
		return nil, false
	}
	return w.link, true
}
