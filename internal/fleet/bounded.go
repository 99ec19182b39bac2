package fleet

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// boundedClient gives every call a deadline. The wire bounds each request already; this bounds the whole call, with
// its waiting for the rate limiter and its retries at the server's wish.
type boundedClient struct {
	client.Client
	timeout time.Duration
}

func bound(c client.Client, timeout time.Duration) client.Client {
	return &boundedClient{Client: c, timeout: timeout}
}

// within calls f with a deadline, and says so when that is what ended it.
func within(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	bounded, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	err := f(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return &noAnswerError{after: timeout}
	}
	return err
}

// Get implements client.Client.
func (c *boundedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.Get(ctx, key, obj, opts...) })
}

// List implements client.Client.
func (c *boundedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.List(ctx, list, opts...) })
}

// Apply implements client.Client.
func (c *boundedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.Apply(ctx, obj, opts...) })
}

// Create implements client.Client.
func (c *boundedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.Create(ctx, obj, opts...) })
}

// Delete implements client.Client.
func (c *boundedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.Delete(ctx, obj, opts...) })
}

// Update implements client.Client.
func (c *boundedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch implements client.Client.
func (c *boundedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// DeleteAllOf implements client.Client.
func (c *boundedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.Client.DeleteAllOf(ctx, obj, opts...) })
}

// Status implements client.Client.
func (c *boundedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.Client.
func (c *boundedClient) SubResource(name string) client.SubResourceClient {
	return &boundedSubResource{inner: c.Client.SubResource(name), timeout: c.timeout}
}

type boundedSubResource struct {
	inner   client.SubResourceClient
	timeout time.Duration
}

// Get implements client.SubResourceClient.
func (c *boundedSubResource) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.inner.Get(ctx, obj, sub, opts...) })
}

// Create implements client.SubResourceClient.
func (c *boundedSubResource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.inner.Create(ctx, obj, sub, opts...) })
}

// Update implements client.SubResourceClient.
func (c *boundedSubResource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.inner.Update(ctx, obj, opts...) })
}

// Patch implements client.SubResourceClient.
func (c *boundedSubResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.inner.Patch(ctx, obj, patch, opts...) })
}

// Apply implements client.SubResourceClient.
func (c *boundedSubResource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return within(ctx, c.timeout, func(ctx context.Context) error { return c.inner.Apply(ctx, obj, opts...) })
}

// lastError remembers the latest error for a message.
type lastError struct {
	mu  sync.Mutex
	err error
}

func (l *lastError) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *lastError) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
