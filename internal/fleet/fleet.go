// Package fleet owns everything about a connection to a worker: credentials, connecting, probing, losing and watching.
package fleet

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ferry.dev/ferry/internal/kinds"
)

// Conn is one live connection to a worker. Reads come from its caches and never touch the network; writes go to the
// worker, each bounded by the request timeout and by the worker's one rate limiter. Once the connection is lost every
// call fails, so a holder of an old Conn can neither read stale data nor write.
type Conn interface {
	// Reader reads typed Kueue Workloads and unstructured objects of the job kinds, only those with our origin
	// label, and all typed LocalQueues; after Fleet.ReadQueues also typed ClusterQueues, Cohorts and ResourceFlavors. A kind that is not served now gives a *NotServedError.
	Reader() client.Reader
	// Find gives one of the objects that Reader reads, as the cache holds it: it must not be changed. The key is as
	// types.NamespacedName prints it, made once by who asks many workers. Nil when there is none.
	Find(gvk schema.GroupVersionKind, key string) (client.Object, error)
	// FindAll appends those that Options.Index says are of a job, in the same way.
	FindAll(gvk schema.GroupVersionKind, job kinds.Ref, to []client.Object) ([]client.Object, error)
	// FindName finds an object of a job kind, be it ours or not, as a metav1.PartialObjectMetadata that has name,
	// namespace, UID, resourceVersion, timestamps and what MultiKueue writes on copies; nil when there is none.
	FindName(gvk schema.GroupVersionKind, key string) (client.Object, error)
	// Client reads and writes the worker directly. It knows the job kinds and Kueue's kinds.
	Client() client.Client
	// Serves tells whether a kind can be used on this worker now, and if not, why.
	Serves(gvk schema.GroupVersionKind) (bool, string)
}

// View is what the rest of Ferry sees of the fleet.
type View interface {
	// Status of a worker; Reach is Unknown for a name that was never set or was removed.
	Status(worker string) Status
	// Conn gives the live connection, only while Connected or Suspect.
	Conn(worker string) (Conn, bool)
	// Workers lists every name that is set and not removed, sorted.
	Workers() []string
}

// Fleet holds the connections to all workers. Its zero value is not usable; see New.
type Fleet struct {
	options Options

	mu      sync.RWMutex // guards the fields below; never held across I/O or callbacks
	workers map[string]*worker
	seen    map[string]bool            // removed workers that were connected
	ending  map[string]<-chan struct{} // done of removed workers, so that one of the same name starts after them
	root    context.Context            // set by Start
	stopped bool
	running sync.WaitGroup
}

var (
	_ View                           = (*Fleet)(nil)
	_ manager.Runnable               = (*Fleet)(nil)
	_ manager.LeaderElectionRunnable = (*Fleet)(nil)
)

// New makes a fleet without workers. Zero options get defaults.
func New(options Options) *Fleet {
	return &Fleet{options: options.withDefaults(), workers: map[string]*worker{}, seen: map[string]bool{}, ending: map[string]<-chan struct{}{}}
}

// Start runs the connections of all workers until ctx ends, and returns when all of their goroutines have ended.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	f.root = ctx
	for _, w := range f.workers {
		f.launchLocked(w)
	}
	f.mu.Unlock()

	<-ctx.Done()

	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.running.Wait()
	return nil
}

// NeedLeaderElection is true: only the leader talks to workers.
func (f *Fleet) NeedLeaderElection() bool { return true }

// Set states how to reach a worker. It reconnects, with a fresh back-off, when the fingerprint changed or the worker
// was unusable; otherwise it does nothing. Other credentials for the same server are used from now on by the
// connection that there is: its caches and watches go on.
func (f *Fleet) Set(name string, cfg *rest.Config, fingerprint string) {
	f.ensure(name).set(rest.CopyConfig(cfg), fingerprint)
}

// Unusable states that a worker's credentials cannot be used: its connection is closed now and stays closed until the
// next Set. The loss keeps the time at which it began.
func (f *Fleet) Unusable(name, reason, message string) {
	f.ensure(name).handle(event{kind: eventUnusable, reason: reason, message: message})
}

// Leave states whether a worker is to be withdrawn from: its jobs go elsewhere and its copies go, as long as the
// connection lasts.
func (f *Fleet) Leave(name string, leaving bool) {
	if w, found := f.lookup(name); found {
		w.handle(event{kind: eventLeave, leaving: leaving})
	}
}

// Remove forgets a worker and closes its connection.
func (f *Fleet) Remove(name string) {
	f.mu.Lock()
	w, found := f.workers[name]
	delete(f.workers, name)
	if found && w.status().Seen {
		f.seen[name] = true
	}
	if found && w.launched {
		f.ending[name] = w.done
	}
	f.mu.Unlock()
	if found {
		w.handle(event{kind: eventRemove})
	}
}

// Status implements View.
func (f *Fleet) Status(name string) Status {
	if w, found := f.lookup(name); found {
		return w.status()
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return Status{Reach: Unknown, Seen: f.seen[name]}
}

// Conn implements View.
func (f *Fleet) Conn(name string) (Conn, bool) {
	if w, found := f.lookup(name); found {
		return w.connection()
	}
	return nil, false
}

// Workers implements View.
func (f *Fleet) Workers() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	names := make([]string, 0, len(f.workers))
	for name := range f.workers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (f *Fleet) lookup(name string) (*worker, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, found := f.workers[name]
	return w, found
}

// ensure returns the worker of that name, made if it is new.
func (f *Fleet) ensure(name string) *worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w, found := f.workers[name]; found {
		return w
	}
	w := newWorker(name, &f.options, f.ending[name])
	w.state.seen = f.seen[name]
	delete(f.ending, name)
	f.workers[name] = w
	if f.root != nil {
		f.launchLocked(w)
	}
	return w
}

func (f *Fleet) launchLocked(w *worker) {
	if f.stopped || f.root.Err() != nil {
		return
	}
	w.launched = true
	f.running.Go(func() { w.run(f.root) })
}
