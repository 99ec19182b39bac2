package jobs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// answersIn bounds one look for a kind.
	answersIn = 10 * time.Second
	// settled is how long discovery may lag behind a change of a CRD.
	settled = 10 * time.Second
)

// kind is one job kind on the manager. No failure of it touches another.
type kind struct {
	gvk     schema.GroupVersionKind
	jobs    *Jobs
	kick    chan struct{} // has room for one: look now
	state   atomic.Pointer[verdict]
	decided chan struct{} // closed at the first verdict
	once    sync.Once
}

// verdict is a reader of the kind's objects, or why there is none.
type verdict struct {
	from client.Reader
	why  string
}

func newKind(j *Jobs, gvk schema.GroupVersionKind) *kind {
	k := &kind{gvk: gvk, jobs: j, kick: make(chan struct{}, 1), decided: make(chan struct{})}
	k.state.Store(&verdict{why: "its objects are still being read"})
	return k
}

func (k *kind) look() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

func (k *kind) reader() (client.Reader, error) {
	now := k.state.Load()
	if now.from == nil {
		return nil, &NotServedError{Kind: k.gvk, Why: now.why}
	}
	return now.from, nil
}

// replay tells the listener all jobs that the cache holds.
func (k *kind) replay() {
	from, err := k.reader()
	if err != nil {
		return
	}
	list := k.list()
	if err := from.List(context.Background(), list); err != nil {
		return // it is being stopped; whoever comes next tells
	}
	for i := range list.Items {
		k.jobs.tell(&list.Items[i])
	}
}

func (k *kind) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	return list
}

// run reads the kind whenever that is possible, until ctx ends.
func (k *kind) run(ctx context.Context) {
	wait := k.jobs.options.RecheckFirst
	for ctx.Err() == nil {
		served, err := k.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if served {
			wait = k.jobs.options.RecheckFirst
		} else {
			k.decide(&verdict{why: k.explain(err)})
		}
		select {
		case <-ctx.Done():
		case <-k.kick:
			wait = k.jobs.options.RecheckFirst
		case <-time.After(wait):
			wait = min(2*wait, k.jobs.options.RecheckMost)
		}
	}
}

// serve looks for the kind and reads it until that fails; served tells whether it could be read at all.
func (k *kind) serve(ctx context.Context) (served bool, err error) {
	if err := k.discover(ctx); err != nil {
		return false, err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	failed := make(chan error, 1)
	made, synced, err := k.open(life, func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err != nil {
		return false, err
	}
	select {
	case <-synced:
	case err := <-failed:
		return false, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
	k.decide(&verdict{from: made})
	if err = k.last(ctx, failed); ctx.Err() == nil {
		k.decide(k.after(ctx, made, err))
	}
	return true, err
}

// last returns why a kind that is read cannot be read any more, once that is so. A watch may outlive its CRD by minutes,
// and not show the objects of the next one; so the kind is looked for after a change of its CRD.
func (k *kind) last(ctx context.Context, failed <-chan error) error {
	var look <-chan time.Time
	wait := settled
	for {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-k.kick:
			wait = k.jobs.options.RecheckFirst
			look = time.After(wait)
		case <-look:
			if err := k.discover(ctx); isAbsent(err) {
				return err
			}
			look = nil
			if wait *= 2; wait < settled {
				look = time.After(wait)
			}
		}
	}
}

func isAbsent(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// after is the verdict when a kind cannot be read any more. One whose objects were all seen to be deleted, as they are
// when a CRD is, has none; otherwise nobody knows what became of them.
func (k *kind) after(ctx context.Context, last client.Reader, err error) *verdict {
	rest := k.list()
	if isAbsent(err) && last.List(ctx, rest, client.Limit(1)) == nil && len(rest.Items) == 0 {
		return &verdict{from: nothing{k.gvk}, why: k.explain(err)}
	}
	return &verdict{why: k.explain(err)}
}

// discover asks whether the manager serves the kind.
func (k *kind) discover(ctx context.Context) error {
	path := "/apis/" + k.gvk.GroupVersion().String()
	if k.gvk.Group == "" {
		path = "/api/" + k.gvk.Version
	}
	list := &metav1.APIResourceList{}
	if err := k.jobs.asks.Get().AbsPath(path).Timeout(answersIn).Do(ctx).Into(list); err != nil {
		return fmt.Errorf("asking for %s: %w", k.gvk.GroupVersion(), err)
	}
	for _, r := range list.APIResources {
		if r.Kind == k.gvk.Kind && slices.Contains(r.Verbs, "watch") {
			return nil
		}
	}
	return &meta.NoKindMatchError{GroupKind: k.gvk.GroupKind(), SearchedVersions: []string{k.gvk.Version}}
}

// open starts a cache that lives as long as ctx. failed is told what will not mend by itself.
func (k *kind) open(ctx context.Context, failed func(error)) (cache.Cache, <-chan struct{}, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(k.gvk)
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    k.told,
		UpdateFunc: func(_, after any) { k.told(after) },
		DeleteFunc: k.told,
	}
	return k.jobs.startCache(ctx, cached{
		object: object, selector: k.jobs.options.Narrowed[k.gvk], index: k.jobs.options.Index,
		strip: k.strip, handler: handler,
	}, failed)
}

// strip drops managed fields, which nobody reads, and what else is not wanted, and lets jobs share what they have in common.
func (k *kind) strip(in any) (any, error) {
	job, is := in.(*unstructured.Unstructured)
	if !is {
		return in, nil
	}
	job.SetManagedFields(nil)
	if k.jobs.options.Lean != nil {
		k.jobs.options.Lean(job)
	}
	k.jobs.shared.job(job)
	return job, nil
}

func (k *kind) told(obj any) {
	if last, unknown := obj.(toolscache.DeletedFinalStateUnknown); unknown {
		obj = last.Obj
	}
	if job, is := obj.(*unstructured.Unstructured); is {
		k.jobs.tell(job)
	}
}

// decide publishes a verdict, and tells of it if it is new.
func (k *kind) decide(now *verdict) {
	before := k.state.Swap(now)
	first := false
	k.once.Do(func() { close(k.decided); first = true })
	was, is := before.from != nil, now.from != nil
	log := k.jobs.options.Log.WithValues("kind", k.gvk.GroupKind().String())
	switch {
	case now.why != "" && before.why != now.why:
		log.Info("Jobs of this kind cannot be read on the manager; they are taken up as soon as they can", "why", now.why)
	case is && !was && !first:
		log.Info("Jobs of this kind can be read on the manager now")
	}
	if l := k.jobs.listening(); l != nil && (was != is || before.why != now.why) {
		l.Served(k.gvk)
	}
}

// explain says for a human why the kind cannot be read.
func (k *kind) explain(err error) string {
	switch {
	case isAbsent(err):
		return fmt.Sprintf("the manager does not serve %s in %s: install its CRD there", k.gvk.Kind, k.gvk.GroupVersion())
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%v; grant this permission to Ferry's ServiceAccount on the manager", err)
	}
	return err.Error()
}
