package world

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// SubmitSet makes a LeaderWorkerSet on the manager.
func (w *World) SubmitSet(name string, replicas int64) error {
	w.Call(name, cluster.Set)
	if _, err := w.Manager.Create(newSet(name, replicas)); err != nil {
		return fmt.Errorf("submit %s: %w", name, err)
	}
	return nil
}

func newSet(name string, replicas int64) *unstructured.Unstructured {
	set := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"replicas": replicas, "leaderWorkerTemplate": map[string]any{
			"size":           int64(1),
			"workerTemplate": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "serve:1"}}}},
		}},
	}}
	set.SetGroupVersionKind(cluster.Set)
	set.SetNamespace(Namespace)
	set.SetName(name)
	set.SetLabels(map[string]string{kueuemodel.QueueLabel: QueueName})
	return set
}

// Scale changes the number of a set's replicas.
func (w *World) Scale(name string, replicas int64) {
	w.editSet(name, func(set *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(set.Object, replicas, "spec", "replicas")
	})
}

// Roll gives a set another template, by which all of its pods are made anew.
func (w *World) Roll(name, image string) {
	w.editSet(name, func(set *unstructured.Unstructured) {
		containers := []any{map[string]any{"name": "main", "image": image}}
		_ = unstructured.SetNestedSlice(set.Object, containers, "spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers")
	})
}

// DeletePods deletes the pods of a set on the manager, which makes them anew.
func (w *World) DeletePods(name string) {
	for _, pod := range PodsOf(w.Manager, w.Manager.Job(Namespace, name)) {
		w.Manager.Remove(cluster.KeyOf(pod))
	}
}

func (w *World) editSet(name string, change func(*unstructured.Unstructured)) {
	w.Manager.Edit(refKey(w.refOf(name)), func(o client.Object) { change(o.(*unstructured.Unstructured)) })
}

// siblings are all Workloads of the job that a manager's Workload belongs to, be the job there or not.
func (w *World) siblings(wl *kueue.Workload) []*kueue.Workload {
	var wls []*kueue.Workload
	for _, obj := range w.Manager.List("Workload") {
		if o := obj.GetOwnerReferences(); len(o) > 0 && o[0].UID == wl.OwnerReferences[0].UID {
			wls = append(wls, obj.(*kueue.Workload))
		}
	}
	return wls
}

// PodsOf are the pods of a set on a cluster.
func PodsOf(c *cluster.Cluster, set *unstructured.Unstructured) []*unstructured.Unstructured {
	var pods []*unstructured.Unstructured
	for _, obj := range c.List(cluster.Pod.Kind) {
		if set != nil && metav1.IsControlledBy(obj, set) {
			pods = append(pods, obj.(*unstructured.Unstructured))
		}
	}
	return pods
}
