package fleet

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// queueKinds are the kinds of Kueue that tell what a worker has to give. Their statuses change with every admission
// there, so they are read only once somebody wants them.
func queueKinds() map[schema.GroupVersionKind]client.Object {
	return map[schema.GroupVersionKind]client.Object{
		kueue.SchemeGroupVersion.WithKind("ClusterQueue"):   &kueue.ClusterQueue{},
		kueue.SchemeGroupVersion.WithKind("Cohort"):         &kueue.Cohort{},
		kueue.SchemeGroupVersion.WithKind("ResourceFlavor"): &kueue.ResourceFlavor{},
	}
}

// ReadQueues has the ClusterQueues, Cohorts and ResourceFlavors of all workers read from now on, by three watches a
// worker. A worker that lets Ferry read none of them is used as before; Conn.Serves tells why it has none.
func (f *Fleet) ReadQueues() { f.options.wantQueues() }

// newQueueKind serves one of Kueue's kinds, once it is wanted.
func newQueueKind(c *conn, gvk schema.GroupVersionKind, object client.Object) *servedKind {
	told := c.options.Events.Queues
	k := &servedKind{gvk: gvk, conn: c, decided: make(chan struct{}), changed: func() { told(c.worker, nil) }}
	k.watch = func(ctx context.Context, failed func(error, bool)) (*serving, error) {
		all, err := c.startMirror(ctx, mirrored{
			object: object, selector: labels.Everything(), strip: stripManaged, failed: failed,
			handler: onChange(func(obj client.Object) { told(c.worker, obj) }),
		})
		return &serving{ours: all}, err
	}
	k.state.Store(&serving{why: "it has not been read"})
	return k
}

// readQueues starts to read the queues once they are wanted, for as long as the connection lives.
func (c *conn) readQueues() {
	select {
	case <-c.options.queuesWanted:
	case <-c.life.Done():
		return
	}
	for _, k := range c.queues {
		c.tasks.Go(func() { k.run(c.life) })
	}
}
