package world

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// SubmitPod makes a pod on the manager, as kubectl apply and the webhooks do. One with a
// family is of a Deployment of that name, and has no end.
func (w *World) SubmitPod(name, family string) error {
	w.Call(name, cluster.Pod)
	pod := newPod(name)
	if family != "" {
		pod.SetAnnotations(map[string]string{kinds.FamilyAnnotation: family})
		_ = unstructured.SetNestedField(pod.Object, "Always", "spec", "restartPolicy")
	}
	w.Kueue.Gate(pod)
	if _, err := w.Manager.Create(pod); err != nil {
		return fmt.Errorf("submit %s: %w", name, err)
	}
	return nil
}

func newPod(name string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "main", "image": "train:1"}}},
	}}
	pod.SetGroupVersionKind(cluster.Pod)
	pod.SetNamespace(Namespace)
	pod.SetName(name)
	pod.SetLabels(map[string]string{kueuemodel.QueueLabel: QueueName})
	return pod
}
