package playground

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/process"
)

// answerWithin bounds one try; it is longer than an API server lets a write take.
const answerWithin = 65 * time.Second

// insist repeats what is safe to repeat: on a machine that does other work too, single answers are late or never come.
// It ends when do succeeds or is refused for good, and gives up as await does.
func insist(ctx context.Context, what string, do func(context.Context) error, needs ...*process.Process) error {
	var refused error
	err := await(ctx, what, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		err := do(ctx)
		if isRefusal(err) {
			refused = err
			return nil
		}
		return err
	}, needs...)
	if refused != nil {
		return fmt.Errorf("%s: %w", what, refused)
	}
	return err
}

// isRefusal tells the answers that the same request would get again.
func isRefusal(err error) bool {
	for _, final := range []func(error) bool{
		apierrors.IsInvalid, apierrors.IsBadRequest, apierrors.IsForbidden, apierrors.IsUnauthorized,
		apierrors.IsMethodNotSupported, apierrors.IsUnsupportedMediaType, apierrors.IsRequestEntityTooLargeError,
	} {
		if final(err) {
			return true
		}
	}
	return false
}

// create makes objects that may be there already.
func (c *Cluster) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		err := insist(ctx, fmt.Sprintf("make %T %s on %s", o, o.GetName(), c.Name), func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(c.client.Create(ctx, o.DeepCopyObject().(client.Object)))
		}, c.apiserver)
		if err != nil {
			return err
		}
	}
	return nil
}

// apply makes or changes objects, in order.
func (c *Cluster) apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		err := insist(ctx, fmt.Sprintf("%s's %s %s", c.Name, o.GetKind(), o.GetName()), func(ctx context.Context) error {
			return manifest.Apply(ctx, c.client, o)
		}, c.apiserver)
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes objects that may be gone already.
func (c *Cluster) remove(ctx context.Context, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		err := insist(ctx, fmt.Sprintf("remove %s %s from %s", o.GetKind(), o.GetName(), c.Name), func(ctx context.Context) error {
			return client.IgnoreNotFound(c.client.Delete(ctx, o))
		}, c.apiserver)
		if err != nil {
			return err
		}
	}
	return nil
}
