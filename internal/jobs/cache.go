package jobs

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cached says what a cache holds.
type cached struct {
	object   client.Object
	selector labels.Selector // nil for all
	strip    toolscache.TransformFunc
	index    Index
	handler  toolscache.ResourceEventHandler
}

// startCache opens a cache of one kind that lives as long as ctx. One of its own, so that it can fail, tell why, and end
// alone. failed is told of errors that say that the kind cannot be read; others pass.
func (j *Jobs) startCache(ctx context.Context, what cached, failed func(error)) (cache.Cache, <-chan struct{}, error) {
	made, err := cache.New(j.options.Config, cache.Options{
		HTTPClient:                  j.options.HTTP,
		Scheme:                      j.options.Scheme,
		Mapper:                      j.options.Mapper,
		ReaderFailOnMissingInformer: true, // a read must never start an informer
		DefaultLabelSelector:        what.selector,
		DefaultTransform:            what.strip,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
				failed(err)
			}
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making a cache: %w", err)
	}
	if what.index.Field != "" {
		if err := made.IndexField(ctx, what.object, what.index.Field, what.index.Extract); err != nil {
			return nil, nil, err
		}
	}
	informer, err := made.GetInformer(ctx, what.object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, err
	}
	if _, err := informer.AddEventHandler(what.handler); err != nil {
		return nil, nil, fmt.Errorf("listening to a cache: %w", err)
	}
	go func() {
		if err := made.Start(ctx); err != nil {
			failed(err)
		}
	}()
	return made, informer.HasSyncedChecker().Done(), nil
}

// nothing reads a kind of which it is known that there are no objects.
type nothing struct{ gvk schema.GroupVersionKind }

// Get implements client.Reader.
func (n nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: n.gvk.Group, Resource: n.gvk.Kind}, key.Name)
}

// List implements client.Reader.
func (n nothing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return meta.SetList(list, nil)
}
