package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/observe"
)

// setup reads what surrounds jobs straight from the stores of the manager's caches: it is asked for at every look at a
// job, once for each worker.
type setup struct{ clusters, queues, namespaces toolscache.Store }

var _ observe.Setup = (*setup)(nil)

func newSetup(ctx context.Context, from cache.Cache) (*setup, error) {
	s := &setup{}
	for store, obj := range map[*toolscache.Store]client.Object{
		&s.clusters: &kueue.MultiKueueCluster{}, &s.queues: &kueue.LocalQueue{}, &s.namespaces: namespaceMetadata(),
	} {
		informer, err := from.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("opening a cache of %T: %w", obj, err)
		}
		shared, ok := informer.(toolscache.SharedIndexInformer)
		if !ok {
			return nil, fmt.Errorf("the cache of %T, a %T, has no store", obj, informer)
		}
		*store = shared.GetStore()
	}
	return s, nil
}

// namespaceMetadata stands for namespaces of which only the metadata is read.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	of := &metav1.PartialObjectMetadata{}
	of.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return of
}

// Cluster implements observe.Setup.
func (s *setup) Cluster(name string) *kueue.MultiKueueCluster {
	return held[*kueue.MultiKueueCluster](s.clusters, name)
}

// LocalQueue implements observe.Setup.
func (s *setup) LocalQueue(namespace, name string) *kueue.LocalQueue {
	return held[*kueue.LocalQueue](s.queues, namespace+"/"+name)
}

// Namespace implements observe.Setup.
func (s *setup) Namespace(name string) *metav1.PartialObjectMetadata {
	return held[*metav1.PartialObjectMetadata](s.namespaces, name)
}

// held is an object as a store has it, which gives no errors; nil where it has none.
func held[T any](in toolscache.Store, key string) T {
	obj, _, _ := in.GetByKey(key)
	found, _ := obj.(T)
	return found
}
