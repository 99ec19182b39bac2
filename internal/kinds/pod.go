package kinds

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Gate is the scheduling gate that keeps a dispatched pod from running on the
// manager; it stays for the pod's life. GatedLabel marks the pods that have it.
const (
	Gate       = ferryPrefix + "dispatched"
	GatedLabel = ferryPrefix + "dispatched"
)

// SpreadAnnotation on a Deployment lets its pods go to any worker. FamilyAnnotation
// is on the pods of the others: they belong together, and it says whose they are.
const (
	SpreadAnnotation = ferryPrefix + "spread"
	FamilyAnnotation = ferryPrefix + "family"
)

// Kueue's names on pods.
const (
	KueueGate        = "kueue.x-k8s.io/admission"
	SuspendingParent = "kueue.x-k8s.io/pod-suspending-parent"
	podGroupKey      = "kueue.x-k8s.io/pod-group-name"
	podGroupCount    = "kueue.x-k8s.io/pod-group-total-count"
	podGroupServing  = "kueue.x-k8s.io/pod-group-serving"
	podRetriable     = "kueue.x-k8s.io/retriable-in-group"
	lwsNameLabel     = "leaderworkerset.sigs.k8s.io/name"
)

var pod = Kind{
	Framework: "pod",
	Also:      []string{"deployment"},
	GVK:       corev1.SchemeGroupVersion.WithKind("Pod"),
	Plural:    "pods",
	Drop:      podDrop,
	Templates: []Path{{}},
	ended:     podEnded,
	ready:     podReady,
	ran:       podRan,
	reflect:   reflectPod,
	started:   podStarted,
	lost:      lostPod,
	Doc: Doc{
		Drop: podDropWhy, Status: podStatus, Needs: "Nothing besides Kueue",
		Flow: "A pod's spec does not change. The pods of a Deployment are dispatched one by one, so that scaling and rollouts need nothing more; they stay together on one worker as long as they fit there, unless the Deployment has the annotation `" + SpreadAnnotation + `: "true"` + "`. A pod that is deleted on its worker is `Failed` on the manager, and its owner there replaces it",
	},
}

const (
	podDropWhy = "Each cluster's own scheduler and priority classes fill these in; Ferry's gate is for the manager only"
	podStatus  = "pod by pod, whole but for its addresses, which only `multiKueue.podNetworksConnected` lets through: Services on the manager do not lead to it. A pod counts as gated until the worker's has a node, lest the manager's cluster autoscaler add nodes for it"
)

var podGroup = Kind{
	Framework: "pod",
	GVK:       corev1.SchemeGroupVersion.WithKind("Pod"),
	name:      "PodGroup",
	Plural:    "pods",
	Group:     true,
	Drop:      podDrop,
	Templates: []Path{{}},
	ended:     podEnded,
	ready:     podReady,
	ran:       podRan,
	reflect:   reflectPod,
	started:   podStarted,
	lost:      lostPod,
	whole:     groupWhole,
	Held:      "kueue.x-k8s.io/managed",
	Doc: Doc{
		Drop: podDropWhy, Status: podStatus, Needs: "Nothing besides Kueue",
		Flow: "Pods that join the group later, as replacements do, follow to its worker; deleted ones are deleted there, though Kueue may keep them in sight on the manager until the group is whole or its Workload is gone",
	},
}

var podDrop = []Path{
	// Each cluster's own scheduler, priority classes and debuggers fill these in.
	{"spec", "nodeName"}, {"spec", "priority"}, {"spec", "preemptionPolicy"}, {"spec", "ephemeralContainers"},
	// Ferry's gate stays behind, and Kueue on the worker sets its own.
	{"spec", "schedulingGates"},
	// By this, administrators keep pods of MultiKueue's off the manager's nodes, see docs/configuration.md.
	{"spec", "nodeSelector", GatedLabel},
}

// podRef tells a pod of a set from one of a group and from one on its own.
func podRef(p *unstructured.Unstructured) Ref {
	r := Ref{Kind: "Pod", Namespace: p.GetNamespace(), Name: p.GetName()}
	switch p.GetAnnotations()[SuspendingParent] {
	case statefulSetFramework:
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
			return Ref{Kind: statefulSetGVK.GroupKind().String(), Namespace: r.Namespace, Name: owner.Name}
		}
	case leaderWorkerSetFramework:
		return Ref{Kind: leaderWorkerSetGVK.GroupKind().String(), Namespace: r.Namespace, Name: p.GetLabels()[lwsNameLabel]}
	}
	if group := podGroupOf(p); group != "" {
		r.Kind, r.Name = "PodGroup", group
	}
	return r
}

// podGroupOf reads the group's name where Kueue does: from the annotation, for
// names too long for a label, and else from the label.
func podGroupOf(p metav1.Object) string {
	if name := p.GetAnnotations()[podGroupKey]; name != "" {
		return name
	}
	return p.GetLabels()[podGroupKey]
}

// withAddresses is the row of a kind whose pods show their addresses on the manager.
func withAddresses(k Kind) Kind {
	if k.GVK == pod.GVK {
		k.reflect = reflectAddressedPod
	}
	if k.Pods {
		shown := withAddresses(pod)
		k.pods = &shown
	}
	return k
}

func podPhase(p *unstructured.Unstructured) corev1.PodPhase {
	phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
	return corev1.PodPhase(phase)
}

func podEnded(p *unstructured.Unstructured) bool {
	return podPhase(p) == corev1.PodSucceeded || podPhase(p) == corev1.PodFailed
}

func podStarted(p *unstructured.Unstructured) bool {
	scheduled := conditionOf(statusOf(p), string(corev1.PodScheduled))
	return podPhase(p) == corev1.PodRunning || podEnded(p) || (scheduled != nil && scheduled["status"] == "True")
}

// podOwn are fields of a pod's status that speak of the cluster that it is on: the manager's stay, whatever the
// worker says. The API server computed some from the manager's spec, and the claims that are named exist there.
var podOwn = []string{"qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus", "nominatedNodeName"}

// podAddresses are what the manager's controllers would publish as endpoints of Services there.
var podAddresses = []string{"podIP", "podIPs", "hostIP", "hostIPs"}

// reflectPod shows the worker's pod, without its addresses: on the manager these lead nowhere, or to somebody else.
func reflectPod(manager, worker *unstructured.Unstructured, _ time.Time) map[string]any {
	return showPod(manager, worker, podAddresses...)
}

func reflectAddressedPod(manager, worker *unstructured.Unstructured, _ time.Time) map[string]any {
	return showPod(manager, worker)
}

// showPod shows the worker's pod without some fields. What is the manager's own stays, and so does "gated" until the
// worker's pod has a node: a pod that is merely unschedulable makes a cluster autoscaler add nodes.
func showPod(manager, worker *unstructured.Unstructured, without ...string) map[string]any {
	was := statusOf(manager)
	if podEnded(manager) {
		return was
	}
	if worker == nil {
		return waiting(manager, was)
	}
	status := statusOf(worker)
	for _, field := range podOwn {
		copyField(status, was, field)
	}
	for _, field := range without {
		delete(status, field)
	}
	observe(status, was, manager, worker)
	if scheduled := conditionOf(status, string(corev1.PodScheduled)); scheduled == nil || scheduled["status"] != "True" {
		keepCondition(status, was, string(corev1.PodScheduled))
	}
	return status
}

// waiting is the status of a pod that has no namesake on the worker. Only the
// pods of a set come back under their names; others are Kueue's to delete.
func waiting(manager *unstructured.Unstructured, was map[string]any) map[string]any {
	if manager.GetAnnotations()[SuspendingParent] == "" || !podStarted(manager) {
		return was
	}
	status := map[string]any{"phase": string(corev1.PodPending), "conditions": []any{map[string]any{
		"type": string(corev1.PodScheduled), "status": "False",
		"reason": corev1.PodReasonSchedulingGated, "message": "The pod is being made anew on its worker",
	}}}
	for _, field := range []string{"qosClass", "observedGeneration", "resourceClaimStatuses"} {
		copyField(status, was, field)
	}
	return status
}

// lostPod ends a pod, alone or of a group: its owner, or the user, may replace it.
func lostPod(manager *unstructured.Unstructured, now time.Time) map[string]any {
	status := statusOf(manager)
	status["phase"] = string(corev1.PodFailed)
	status["reason"] = "WorkerPodGone"
	status["message"] = "The pod is gone from its worker"
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		if c := conditionOf(status, string(t)); c != nil && c["status"] != "False" {
			c["status"], c["reason"], c["lastTransitionTime"] = "False", "PodFailed", now.UTC().Format(time.RFC3339)
		}
	}
	return status
}

// groupWhole is Kueue's rule for the end of a group: as many pods as it counts
// succeeded, or all ended and one of them says that none is to be replaced. A
// group that serves has no end.
func groupWhole(pods []*unstructured.Unstructured) bool {
	succeeded, total, retriable := 0, 0, true
	for _, p := range pods {
		annotations := p.GetAnnotations()
		if annotations[podGroupServing] == "true" {
			return false
		}
		if podPhase(p) == corev1.PodSucceeded {
			succeeded++
		}
		retriable = retriable && annotations[podRetriable] != "false"
		if n, err := strconv.Atoi(annotations[podGroupCount]); err == nil {
			total = n
		}
	}
	return !retriable || succeeded >= total
}

// conditionOf finds a condition in a status; nil when it is not there.
func conditionOf(status map[string]any, t string) map[string]any {
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == t {
			return m
		}
	}
	return nil
}

// keepCondition replaces a condition by the one that another status has.
func keepCondition(status, from map[string]any, t string) {
	kept := conditionOf(from, t)
	conditions, _ := status["conditions"].([]any)
	next := []any{}
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] != t {
			next = append(next, c)
		}
	}
	if kept != nil {
		next = append(next, kept)
	}
	if len(next) == 0 {
		delete(status, "conditions")
		return
	}
	status["conditions"] = next
}
