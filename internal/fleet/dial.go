package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// dial makes a connection over the network. It probes before it watches, so that a worker that does not answer costs
// one request; and it is done only when the Workloads and LocalQueues are read, because a worker can answer a probe
// and hang on a list.
func dial(ctx context.Context, to target) (link, error) {
	c, err := prepare(to)
	if err != nil {
		return nil, err
	}
	if err := c.open(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// prepare builds everything that needs no network.
func prepare(to target) (*conn, error) {
	c := &conn{target: to, mapper: newMapper(), kinds: map[schema.GroupVersionKind]*servedKind{}, queues: map[schema.GroupVersionKind]*servedKind{}}
	c.life, c.end = context.WithCancel(context.Background())
	c.config = c.configured(to.config)
	for _, gvk := range to.options.Kinds {
		c.kinds[gvk] = newJobKind(c, gvk)
	}
	for gvk, object := range queueKinds() {
		c.queues[gvk] = newQueueKind(c, gvk, object)
	}
	if err := c.prepareClients(); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// configured is a kubeconfig's configuration with what all connections have in common.
func (c *conn) configured(from *rest.Config) *rest.Config {
	config := rest.CopyConfig(from)
	config.RateLimiter = c.limiter
	config.UserAgent = c.options.UserAgent
	config.Timeout = 0 // it would cut watches too; the wire bounds requests
	return config
}

func (c *conn) prepareClients() error {
	var err error
	if c.network, err = newWire(c.life, c.config, c.options.RequestTimeout); err != nil {
		return err
	}
	c.http = &http.Client{Transport: c.network}
	direct, err := client.New(c.config, client.Options{HTTPClient: c.http, Scheme: c.options.Scheme, Mapper: c.mapper})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	c.client = bound(direct, c.options.RequestTimeout)

	unlimited := rest.CopyConfig(c.config)
	unlimited.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	unlimited.GroupVersion = &schema.GroupVersion{}
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	unlimited.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	c.asks, err = rest.UnversionedRESTClientForConfigAndClient(unlimited, c.http)
	if err != nil {
		return fmt.Errorf("making a client for probes: %w", err)
	}
	return nil
}

// open probes, reads Kueue's objects, and gives the job kinds a moment to be read too.
func (c *conn) open(ctx context.Context) error {
	if err := within(ctx, c.options.ProbeTimeout, c.list); err != nil {
		return err
	}
	if err := c.openCore(ctx); err != nil {
		return err
	}
	for _, k := range c.kinds {
		c.tasks.Go(func() { k.run(c.life) })
	}
	c.tasks.Go(c.readQueues)
	grace := time.NewTimer(c.options.KindGrace)
	defer grace.Stop()
	for _, k := range c.kinds {
		select {
		case <-k.decided:
		case <-grace.C:
			return nil // the rest follow when they can
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// openCore mirrors Workloads of ours and all LocalQueues, and waits for both.
func (c *conn) openCore(ctx context.Context) error {
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	var last lastError
	failed := func(err error, stale bool) {
		last.set(err)
		if stale || refused(err) {
			give(err)
			c.signals.broken(err)
			return
		}
		c.signals.trouble()
	}
	core := map[schema.GroupVersionKind]*mirror{}
	for name, what := range c.coreMirrors() {
		what.failed = failed
		made, err := c.startMirror(c.life, what)
		if err != nil {
			return err
		}
		core[kueue.SchemeGroupVersion.WithKind(name)] = made
	}
	c.core = core
	for gvk, made := range core {
		select {
		case <-made.synced:
		case <-ctx.Done():
			return unread(gvk.Kind, context.Cause(ctx), last.get())
		}
	}
	return nil
}

func (c *conn) coreMirrors() map[string]mirrored {
	told := func(obj client.Object) { c.options.Events.Changed(c.worker, obj) }
	return map[string]mirrored{
		"Workload": {
			object: &kueue.Workload{}, selector: c.ours(), strip: c.stripWorkload, index: c.options.Index, handler: onChange(told),
			moved: c.signals.moved,
		},
		"LocalQueue": {
			object: &kueue.LocalQueue{}, selector: labels.Everything(), strip: stripManaged, handler: onNames(told), moved: c.signals.moved,
		},
	}
}

// unread says why a kind that Ferry cannot do without was not read in time.
func unread(kind string, cause, last error) error {
	reading := fmt.Sprintf("reading its %ss", kind)
	var noAnswer *noAnswerError
	switch {
	case apierrors.ReasonForError(cause) != "":
		return cause
	case errors.As(cmp.Or(last, cause), &noAnswer):
		return &noAnswerError{after: noAnswer.after, to: reading}
	}
	return fmt.Errorf("%s: %w", reading, cmp.Or(last, cause))
}
