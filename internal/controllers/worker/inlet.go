package worker

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Inlet queues clusters for reconciliation from anywhere in the program. It never blocks, so it may be called from
// the fleet's callbacks. The zero value is ready for use.
type Inlet struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	early []string // told before the controller started
}

var _ source.Source = (*Inlet)(nil)

// Notify queues clusters by name.
func (i *Inlet) Notify(names ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queue == nil {
		i.early = append(i.early, names...)
		return
	}
	for _, name := range names {
		i.queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}
}

// Start implements source.Source.
func (i *Inlet) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	i.mu.Lock()
	i.queue = queue
	early := i.early
	i.early = nil
	i.mu.Unlock()
	i.Notify(early...)
	return nil
}
