// Package jobs reads the jobs on the manager: one cache for each kind, for as long as the manager serves it, so that a CRD may come and go while Ferry runs.
package jobs

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Options say how to read the manager. Zero times get the defaults named here.
type Options struct {
	Config *rest.Config
	HTTP   *http.Client
	Scheme *runtime.Scheme
	// Mapper must find kinds that come later.
	Mapper meta.RESTMapper
	// Kinds are the job kinds to read.
	Kinds []schema.GroupVersionKind
	// Narrowed says of which kinds not all objects are read.
	Narrowed map[schema.GroupVersionKind]labels.Selector
	// Lean takes out of a job what nobody reads, before it is cached; nil: nothing.
	Lean func(job *unstructured.Unstructured)
	// Index adds a field index to the objects of all kinds; none if its Field is empty.
	Index Index
	// Other reads everything else.
	Other client.Reader
	// RecheckFirst and RecheckMost bound the growing time between two looks for a kind that cannot be read; 500 ms
	// and 2 minutes. A changed CRD is looked at without waiting.
	RecheckFirst, RecheckMost time.Duration
	Log                       logr.Logger
}

// Index lets objects be found by a field that is computed.
type Index struct {
	Field   string
	Extract client.IndexerFunc
}

// Listener is told what happens. Its functions must be quick.
type Listener struct {
	// Changed is told every job that is new, changed or deleted.
	Changed func(job *unstructured.Unstructured)
	// Served is told that a kind can be read now, or no more. Jobs may have gone unseen before.
	Served func(gvk schema.GroupVersionKind)
}

// Jobs reads the jobs of all kinds. It runs on every replica, so that a standby has its caches filled.
type Jobs struct {
	options Options
	asks    rest.Interface
	kinds   map[schema.GroupVersionKind]*kind
	shared  shared

	mu       sync.Mutex
	listener *Listener
}

var (
	_ manager.Runnable               = (*Jobs)(nil)
	_ manager.LeaderElectionRunnable = (*Jobs)(nil)
	_ client.Reader                  = (*Jobs)(nil)
)

// New prepares the caches. It makes no request.
func New(o Options) (*Jobs, error) {
	if o.RecheckFirst == 0 {
		o.RecheckFirst = 500 * time.Millisecond
	}
	if o.RecheckMost == 0 {
		o.RecheckMost = 2 * time.Minute
	}
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(o.Config, o.HTTP)
	if err != nil {
		return nil, fmt.Errorf("making a client to look for kinds on the manager: %w", err)
	}
	j := &Jobs{options: o, asks: asks.RESTClient(), kinds: map[schema.GroupVersionKind]*kind{}}
	for _, gvk := range o.Kinds {
		j.kinds[gvk] = newKind(j, gvk)
	}
	return j, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (j *Jobs) NeedLeaderElection() bool { return false }

// Start reads until ctx ends.
func (j *Jobs) Start(ctx context.Context) error {
	var all sync.WaitGroup
	for _, k := range j.kinds {
		all.Go(func() { k.run(ctx) })
	}
	all.Go(func() { j.watchDefinitions(ctx) })
	all.Wait()
	return nil
}

// Listen sets who is told; the jobs that are known already are told at once.
func (j *Jobs) Listen(l Listener) {
	j.mu.Lock()
	j.listener = &l
	j.mu.Unlock()
	for _, k := range j.kinds {
		k.replay()
	}
}

func (j *Jobs) tell(job *unstructured.Unstructured) {
	if l := j.listening(); l != nil {
		l.Changed(job)
	}
}

func (j *Jobs) listening() *Listener {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.listener
}

// Await returns once it is known of every kind whether it can be read; false if ctx ends before.
func (j *Jobs) Await(ctx context.Context) bool {
	for _, k := range j.kinds {
		select {
		case <-k.decided:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Look tells that something about an API group changed.
func (j *Jobs) Look(group string) {
	for gvk, k := range j.kinds {
		if gvk.Group == group {
			k.look()
		}
	}
}

// NotServedError tells that a kind cannot be read on the manager now.
type NotServedError struct {
	Kind schema.GroupVersionKind
	Why  string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("%s cannot be read on the manager: %s", e.Kind.GroupKind(), e.Why)
}

// Get implements client.Reader. A job of a kind that cannot be read now gives a *NotServedError.
func (j *Jobs) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	from, err := j.source(obj)
	if err != nil {
		return err
	}
	return from.Get(ctx, key, obj, opts...)
}

// List implements client.Reader, as Get does.
func (j *Jobs) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	from, err := j.source(list)
	if err != nil {
		return err
	}
	return from.List(ctx, list, opts...)
}

func (j *Jobs) source(obj runtime.Object) (client.Reader, error) {
	if _, is := obj.(runtime.Unstructured); !is {
		return j.options.Other, nil
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	k, found := j.kinds[gvk]
	if !found {
		return j.options.Other, nil
	}
	return k.reader()
}
