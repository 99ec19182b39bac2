package fleet

import (
	"context"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// conn is a link over the network.
type conn struct {
	target
	life    context.Context // ends with the connection
	end     context.CancelFunc
	tasks   sync.WaitGroup
	network *wire
	http    *http.Client
	config  *rest.Config // with the worker's rate limiter; who logs in may have changed since, see renew
	mapper  *mapper
	client  client.Client
	asks    rest.Interface // without the rate limiter: a busy worker must not look like a dead one

	core   map[schema.GroupVersionKind]*mirror // written before the conn is published
	kinds  map[schema.GroupVersionKind]*servedKind
	queues map[schema.GroupVersionKind]*servedKind // of Kueue; not read before they are wanted
}

var _ link = (*conn)(nil)

// Reader implements Conn.
func (c *conn) Reader() client.Reader {
	return &router{conn: c}
}

// Find implements Conn.
func (c *conn) Find(gvk schema.GroupVersionKind, key string) (client.Object, error) {
	m, err := c.mirrorOf(gvk)
	if err != nil {
		return nil, err
	}
	return m.find(key), nil
}

// FindAll implements Conn.
func (c *conn) FindAll(gvk schema.GroupVersionKind, job kinds.Ref, to []client.Object) ([]client.Object, error) {
	m, err := c.mirrorOf(gvk)
	if err != nil {
		return to, err
	}
	return m.findAll(job, to)
}

// FindName implements Conn.
func (c *conn) FindName(gvk schema.GroupVersionKind, key string) (client.Object, error) {
	now, err := c.servingOf(gvk)
	if err != nil {
		return nil, err
	}
	if now.names == nil {
		return nil, &NotServedError{Kind: gvk, Why: now.why}
	}
	return now.names.find(key), nil
}

// mirrorOf is where the objects of a kind are read that are ours, and all of Kueue's kinds.
func (c *conn) mirrorOf(gvk schema.GroupVersionKind) (*mirror, error) {
	if held, found := c.core[gvk]; found {
		return held, c.lost()
	}
	now, err := c.servingOf(gvk)
	if err != nil {
		return nil, err
	}
	if now.ours == nil {
		return nil, &NotServedError{Kind: gvk, Why: now.why}
	}
	return now.ours, nil
}

func (c *conn) servingOf(gvk schema.GroupVersionKind) (*serving, error) {
	if err := c.lost(); err != nil {
		return nil, err
	}
	k, found := c.kindOf(gvk)
	if !found {
		return nil, &NotServedError{Kind: gvk, Why: "this kind is not among the configured ones"}
	}
	return k.state.Load(), nil
}

func (c *conn) kindOf(gvk schema.GroupVersionKind) (*servedKind, bool) {
	if k, found := c.kinds[gvk]; found {
		return k, true
	}
	k, found := c.queues[gvk]
	return k, found
}

func (c *conn) lost() error {
	if c.life.Err() != nil {
		return errClosed
	}
	return nil
}

// Client implements Conn.
func (c *conn) Client() client.Client { return c.client }

// Serves implements Conn.
func (c *conn) Serves(gvk schema.GroupVersionKind) (bool, string) {
	if c.life.Err() != nil {
		return false, errClosed.Error()
	}
	k, found := c.kindOf(gvk)
	if !found {
		return false, "this kind is not among the configured ones"
	}
	now := k.state.Load()
	return now.ours != nil, now.why
}

// probe implements link.
func (c *conn) probe(ctx context.Context, deep bool) error {
	if deep {
		return c.list(ctx)
	}
	err := c.asks.Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error()
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil // hardened, or behind a proxy that does not pass it on; but something answers
	}
	return err
}

// list asks for one Workload of ours, which shows whether Kueue is there and may be read.
func (c *conn) list(ctx context.Context) error {
	return c.asks.Get().AbsPath("/apis/"+kueue.SchemeGroupVersion.String()+"/workloads").
		Param("limit", "1").Param("labelSelector", c.ours().String()).
		MaxRetries(0).Do(ctx).Error()
}

// renew implements link.
func (c *conn) renew(config *rest.Config) error { return c.network.use(c.configured(config)) }

// close implements link.
func (c *conn) close() {
	c.end()
	c.tasks.Wait()
}

// ours selects the objects that Ferry made.
func (c *conn) ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{kueue.MultiKueueOriginLabel: c.options.Origin})
}

// router reads from the mirror of the kind that is asked for.
type router struct{ conn *conn }

// Get implements client.Reader.
func (r *router) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	source, err := r.source(obj)
	if err != nil {
		return err
	}
	return source.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (r *router) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	source, err := r.source(list)
	if err != nil {
		return err
	}
	return source.List(ctx, list, opts...)
}

func (r *router) source(obj runtime.Object) (client.Reader, error) {
	gvk, err := apiutil.GVKForObject(obj, r.conn.options.Scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return r.conn.mirrorOf(gvk)
}
