package webhook

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ferry.dev/ferry/internal/kinds"
)

// PodGate gives new pods that Kueue manages, and whose queue leads to a check of
// ours, a scheduling gate that nobody lifts: they run on a worker, never here.
// Kueue's own gate does not last, as Kueue lifts it on admission. Which pods are
// Kueue's is Kueue's to say, so this webhook has to be called after Kueue's.
type PodGate struct {
	Reader client.Reader
}

var _ admission.Handler = (*PodGate)(nil)

// Handle implements admission.Handler; it refuses as ManagedBy does.
func (h *PodGate) Handle(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return admission.Allowed("")
	}
	pod := &unstructured.Unstructured{}
	if err := pod.UnmarshalJSON(req.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("the Pod cannot be read as JSON: %w", err))
	}
	if !hasGate(pod, kinds.KueueGate) || hasGate(pod, kinds.Gate) {
		return admission.Allowed("")
	}
	ours, err := h.isOurs(ctx, pod, req.Namespace)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Refusing a pod because its queue could not be looked up")
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("whether this Pod is to run on a worker is unknown, so Ferry refuses it; try again: %w", err))
	}
	if !ours {
		return admission.Allowed("")
	}
	return admission.Patched("", addGate(), addLabel(pod))
}

func (h *PodGate) isOurs(ctx context.Context, pod *unstructured.Unstructured, namespace string) (bool, error) {
	queue, err := h.queueOf(ctx, pod, namespace)
	if err != nil || queue == "" {
		return false, err
	}
	return leadsToUs(ctx, h.Reader, client.ObjectKey{Namespace: namespace, Name: queue})
}

// queueOf is the pod's queue, or its StatefulSet's: Kueue labels the pods of a
// StatefulSet only after they were created.
func (h *PodGate) queueOf(ctx context.Context, pod *unstructured.Unstructured, namespace string) (string, error) {
	if queue := pod.GetLabels()[queueLabel]; queue != "" {
		return queue, nil
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" || pod.GetAnnotations()[kinds.SuspendingParent] == "" {
		return "", nil
	}
	set := &unstructured.Unstructured{}
	set.SetGroupVersionKind(schema.GroupVersionKind{Group: appsv1.GroupName, Version: "v1", Kind: owner.Kind})
	err := h.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, set)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read StatefulSet %q: %w", owner.Name, err)
	}
	return set.GetLabels()[queueLabel], nil
}

func hasGate(pod *unstructured.Unstructured, name string) bool {
	gates, _, _ := unstructured.NestedSlice(pod.Object, "spec", "schedulingGates")
	for _, g := range gates {
		if gate, _ := g.(map[string]any); gate["name"] == name {
			return true
		}
	}
	return false
}

func addGate() jsonpatch.Operation {
	return jsonpatch.NewOperation("add", "/spec/schedulingGates/-", corev1.PodSchedulingGate{Name: kinds.Gate})
}

// addLabel marks the pod, so that Ferry need not read all pods.
func addLabel(pod *unstructured.Unstructured) jsonpatch.Operation {
	if len(pod.GetLabels()) == 0 {
		return jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{kinds.GatedLabel: "true"})
	}
	return jsonpatch.NewOperation("add", pointer(kinds.Path{"metadata", "labels", kinds.GatedLabel}), "true")
}
