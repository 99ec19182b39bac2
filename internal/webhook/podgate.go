package webhook

import (
	"context"
	"fmt"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	pod, answer := created(req, "Pod")
	if pod == nil {
		return answer
	}
	if !hasGate(pod, kinds.KueueGate) || hasGate(pod, kinds.Gate) {
		return admission.Allowed("")
	}
	ours, err := h.isOurs(ctx, pod, req.Namespace)
	if err != nil {
		return unknown(ctx, "Pod", err)
	}
	if !ours {
		return admission.Allowed("")
	}
	patches := []jsonpatch.Operation{addGate(), addTo("labels", pod.GetLabels(), kinds.GatedLabel, "true")}
	family, err := h.familyOf(ctx, pod, req.Namespace)
	if err != nil {
		return unknown(ctx, "Pod", err)
	}
	if family != "" {
		patches = append(patches, addTo("annotations", pod.GetAnnotations(), kinds.FamilyAnnotation, family))
	}
	return admission.Patched("", patches...)
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

// familyOf names the Deployment that a pod belongs to, unless its pods may spread.
// The Deployment's name is that of the ReplicaSet without the hash that the pods carry too.
func (h *PodGate) familyOf(ctx context.Context, pod *unstructured.Unstructured, namespace string) (string, error) {
	owner, hash := metav1.GetControllerOf(pod), pod.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
	if owner == nil || owner.Kind != "ReplicaSet" || hash == "" {
		return "", nil
	}
	name := strings.TrimSuffix(owner.Name, "-"+hash)
	deployment := &metav1.PartialObjectMetadata{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	err := h.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read Deployment %q: %w", name, err)
	}
	if deployment.Annotations[kinds.SpreadAnnotation] == "true" {
		return "", nil
	}
	return name, nil
}

// addTo adds a label or an annotation to what the pod has.
func addTo(field string, has map[string]string, name, value string) jsonpatch.Operation {
	if len(has) == 0 {
		return jsonpatch.NewOperation("add", "/metadata/"+field, map[string]any{name: value})
	}
	return jsonpatch.NewOperation("add", pointer(kinds.Path{"metadata", field, name}), value)
}
