// Package inlet lets any part of the program queue requests for a controller.
package inlet

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Inlet is a source of requests for one controller. It never blocks, so it may
// be called from event handlers. The zero value is ready for use.
type Inlet[T comparable] struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[T]
	early []T // queued before the controller started
}

var _ source.TypedSource[string] = (*Inlet[string])(nil)

// Add queues requests.
func (i *Inlet[T]) Add(requests ...T) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.addLocked(requests)
}

func (i *Inlet[T]) addLocked(requests []T) {
	if i.queue == nil {
		i.early = append(i.early, requests...)
		return
	}
	for _, r := range requests {
		i.queue.Add(r)
	}
}

// AddLow queues requests that everything else goes before. A controller without a queue of priorities takes them
// in turn.
func (i *Inlet[T]) AddLow(requests ...T) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if q, ranks := i.queue.(priorityqueue.PriorityQueue[T]); ranks {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, requests...)
		return
	}
	i.addLocked(requests)
}

// Start implements source.TypedSource.
func (i *Inlet[T]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[T]) error {
	i.mu.Lock()
	i.queue = queue
	early := i.early
	i.early = nil
	i.mu.Unlock()
	i.Add(early...)
	return nil
}
