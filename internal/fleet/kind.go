package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// servedKind is one kind on one worker. It tries for as long as the connection lives, and no failure of it touches
// another kind.
type servedKind struct {
	gvk     schema.GroupVersionKind
	conn    *conn
	watch   func(ctx context.Context, failed func(err error, stale bool)) (*serving, error) // starts the mirrors
	changed func()                                                                          // told of a new verdict
	state   atomic.Pointer[serving]
	decided chan struct{} // closed at the first verdict
	once    sync.Once
}

// serving is the present verdict on a kind: readers, or why there are none.
type serving struct {
	ours  *mirror
	names *mirror
	why   string
}

// mirrors are those that have to be read before the kind is served.
func (s *serving) mirrors() []*mirror {
	if s.names == nil {
		return []*mirror{s.ours}
	}
	return []*mirror{s.ours, s.names}
}

// newJobKind serves a job kind.
func newJobKind(c *conn, gvk schema.GroupVersionKind) *servedKind {
	k := &servedKind{gvk: gvk, conn: c, decided: make(chan struct{}), changed: c.signals.kinds}
	k.watch = k.watchJobs
	k.state.Store(&serving{why: "its objects are still being read"})
	return k
}

// run keeps the kind served whenever that is possible, until ctx ends.
func (k *servedKind) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := k.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		k.decide(&serving{why: k.explain(err)})
		select {
		case <-ctx.Done():
		case <-time.After(k.conn.options.KindRecheck):
		}
	}
}

// decide publishes a verdict and tells of it if it is new.
func (k *servedKind) decide(now *serving) {
	before := k.state.Swap(now)
	k.once.Do(func() { close(k.decided) })
	if (before.ours == nil) != (now.ours == nil) || before.why != now.why {
		k.changed()
	}
}

// serve watches the kind; it returns only when that fails.
func (k *servedKind) serve(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := func(err error, stale bool) {
		if stale || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			stop(err)
			return
		}
		k.conn.signals.trouble()
	}
	now, err := k.watch(ctx, failed)
	if err != nil {
		return err
	}
	for _, m := range now.mirrors() {
		select {
		case <-m.synced:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	k.decide(now)
	<-ctx.Done()
	return context.Cause(ctx)
}

// watchJobs discovers the kind and starts its two mirrors: all of the objects that are ours, and the names of the
// others, unless these are not wanted.
func (k *servedKind) watchJobs(ctx context.Context, failed func(error, bool)) (*serving, error) {
	if err := k.discover(ctx); err != nil {
		return nil, err
	}
	told := func(obj client.Object) { k.conn.options.Events.Changed(k.conn.worker, obj) }
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(k.gvk)
	ours, err := k.conn.startMirror(ctx, mirrored{
		object: object, selector: k.conn.ours(), strip: stripManaged, index: k.conn.options.Index, handler: onChange(told), failed: failed,
	})
	if err != nil || slices.Contains(k.conn.options.Unnamed, k.gvk) {
		return &serving{ours: ours}, err
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(k.gvk)
	names, err := k.conn.startMirror(ctx, mirrored{
		object: metadata, selector: labels.Everything(), strip: stripToName, handler: onNames(told), failed: failed,
	})
	return &serving{ours: ours, names: names}, err
}

// discover asks the worker for the kind's resource.
func (k *servedKind) discover(ctx context.Context) error {
	path := "/apis/" + k.gvk.GroupVersion().String()
	if k.gvk.Group == "" {
		path = "/api/" + k.gvk.Version
	}
	list := &metav1.APIResourceList{}
	if err := k.conn.asks.Get().AbsPath(path).Do(ctx).Into(list); err != nil {
		return fmt.Errorf("asking for %s: %w", k.gvk.GroupVersion(), err)
	}
	for _, r := range list.APIResources {
		if r.Kind != k.gvk.Kind || !slices.Contains(r.Verbs, "watch") {
			continue
		}
		if !r.Namespaced {
			return fmt.Errorf("its resource %s is not namespaced", r.Name)
		}
		k.conn.mapper.add(mapping{k.gvk, resourceNames{r.Name, r.SingularName}, meta.RESTScopeNamespace})
		return nil
	}
	return &meta.NoKindMatchError{GroupKind: k.gvk.GroupKind(), SearchedVersions: []string{k.gvk.Version}}
}

// explain says for a human why the kind cannot be used.
func (k *servedKind) explain(err error) string {
	var noMatch *meta.NoKindMatchError
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &noMatch), apierrors.IsNotFound(err):
		return fmt.Sprintf("the worker does not serve %s in %s: install its CRD and operator there", k.gvk.Kind, k.gvk.GroupVersion())
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		return status.Status().Message + "; grant this permission to the kubeconfig's user on the worker"
	}
	return fmt.Sprintf("reading %s failed: %s", k.gvk.Kind, plain(err))
}
