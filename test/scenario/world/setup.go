package world

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/controllers/drain"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/test/scenario/cluster"
)

// setup implements observe.Setup, without the lag of a cache.
type setup struct{ manager *cluster.Cluster }

// Cluster implements observe.Setup.
func (s setup) Cluster(name string) *kueue.MultiKueueCluster {
	found, _ := s.manager.Get(cluster.Key{Kind: "MultiKueueCluster", Name: name}).(*kueue.MultiKueueCluster)
	return found
}

// LocalQueue implements observe.Setup.
func (s setup) LocalQueue(namespace, name string) *kueue.LocalQueue {
	found, _ := s.manager.Get(cluster.Key{Kind: "LocalQueue", Namespace: namespace, Name: name}).(*kueue.LocalQueue)
	return found
}

// Namespace implements observe.Setup: namespaces are not modelled.
func (setup) Namespace(string) *metav1.PartialObjectMetadata { return nil }

// AnnotateCluster lets an administrator say something of a worker; an empty value takes it back.
func (w *World) AnnotateCluster(worker, annotation, value string) {
	w.say(&kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: worker}}, annotation, value)
	if w.ferry != nil {
		w.ferry.enqueue(dispatchQueue, w.ferry.dispatch.Concerned(context.Background(), worker)...)
		w.ferry.drain(worker)
	}
}

// drain queues a worker for the controller that drains them.
func (f *ferry) drain(worker string) {
	if f.toDrain == nil {
		f.toDrain = map[string]bool{}
	}
	f.toDrain[worker] = true
}

// drainAll queues all workers that are being drained.
func (f *ferry) drainAll() {
	for _, request := range f.drains.Draining() {
		f.drain(request.Name)
	}
}

// drainSteps are the turns of that controller.
func (f *ferry) drainSteps() []step {
	var steps []step
	for _, name := range f.world.names {
		if f.toDrain[name] {
			steps = append(steps, step{who: "drain", what: name, do: func() { f.drainOne(name) }})
		}
	}
	return steps
}

func (f *ferry) drainOne(name string) {
	delete(f.toDrain, name)
	result, err := f.drains.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	if err != nil || result.RequeueAfter > 0 {
		f.drain(name)
	}
}

// AnnotateQueue lets an administrator say something of the manager's LocalQueue.
func (w *World) AnnotateQueue(annotation, value string) {
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: QueueName}}
	w.say(queue, annotation, value)
	if w.ferry != nil {
		w.ferry.enqueue(dispatchQueue, w.ferry.dispatch.WaitingFor(context.Background(), queue)...)
	}
}

// AnnotateJob lets a user say something of a job.
func (w *World) AnnotateJob(name, annotation, value string) {
	w.Tracef("user: %s=%s on %s", annotation, value, name)
	w.Manager.Edit(refKey(w.refOf(name)), annotate(annotation, value)) // whose event wakes Ferry
}

func (w *World) say(obj client.Object, annotation, value string) {
	w.Tracef("admin: %s=%s on %s", annotation, value, obj.GetName())
	if w.Manager.Get(cluster.KeyOf(obj)) == nil {
		_, _ = w.Manager.Create(obj)
	}
	w.Manager.Edit(cluster.KeyOf(obj), annotate(annotation, value))
}

func annotate(annotation, value string) func(client.Object) {
	return func(obj client.Object) {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotation] = value
		obj.SetAnnotations(annotations)
	}
}

// drains tells whether a worker is being drained now.
func (w *World) drains(worker string) bool {
	c := setup{w.Manager}.Cluster(worker)
	return c != nil && placement.FactsOf(c.Labels, c.Annotations).Draining
}

// Progress is how far a worker is drained, as its MultiKueueCluster says.
func (w *World) Progress(worker string) string {
	if c := (setup{w.Manager}).Cluster(worker); c != nil {
		if condition := meta.FindStatusCondition(c.Status.Conditions, drain.Condition); condition != nil {
			return condition.Reason + ": " + condition.Message
		}
	}
	return "-"
}
