package world

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

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

// excluded tells whether something keeps a job from a worker now.
func (w *World) excluded(worker string) bool {
	c := setup{w.Manager}.Cluster(worker)
	return c != nil && placement.Excludes(worker, placement.FactsOf(c.Labels, c.Annotations), placement.Wish{}) != ""
}
