package webhook

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/jobs"
)

// patient asks the API server for what the cache does not have: queues and jobs
// are often applied in one go, and the cache may hear of the queue last, or be
// filled yet.
type patient struct {
	client.Reader
	live client.Reader
}

// Get implements client.Reader.
func (p patient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := p.Reader.Get(ctx, key, obj, opts...)
	var notServed *jobs.NotServedError
	if apierrors.IsNotFound(err) || errors.As(err, &notServed) {
		return p.live.Get(ctx, key, obj, opts...)
	}
	return err
}
