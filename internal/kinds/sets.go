package kinds

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	statefulSetFramework     = "statefulset"
	leaderWorkerSetFramework = "leaderworkerset.x-k8s.io/leaderworkerset"

	// componentIndex is Kueue's annotation on a Workload for one replica of a set.
	componentIndex = "kueue.x-k8s.io/component-workload-index"
	// groupIndex and workerIndex are LWS's labels on pods: of which replica, and which pod of it; 0 is the leader.
	groupIndex  = "leaderworkerset.sigs.k8s.io/group-index"
	workerIndex = "leaderworkerset.sigs.k8s.io/worker-index"
)

var (
	statefulSetGVK     = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	leaderWorkerSetGVK = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
)

var statefulSet = Kind{
	Framework: statefulSetFramework,
	GVK:       statefulSetGVK,
	Plural:    "statefulsets",
	Pods:      true,
	Claims:    []Path{{"spec", "volumeClaimTemplates", each}, {"spec", "template", "spec", "volumes", each, "ephemeral"}},
	ready:     counted("readyReplicas"),
	ran:       counted("availableReplicas"), // its pods tell the rest
	Flow: []Path{
		{"spec", "replicas"}, {"spec", "ordinals"}, {"spec", "template"}, {"spec", "updateStrategy"}, {"spec", "minReadySeconds"},
		{"spec", "persistentVolumeClaimRetentionPolicy"},
	},
	project:      func(set *unstructured.Unstructured) { markTemplate(set, "spec", "template") },
	sameRevision: sameRevision,
	Doc: Doc{
		Status: setStatus, Needs: "Nothing besides Kueue",
		Flow: "Kueue lets `replicas` go to zero and back only. A rollout is done on the manager when it is on the worker",
	},
}

const setStatus = "the manager's own controller computes it from its pods, each of which shows the status of its namesake on the worker"

var leaderWorkerSet = Kind{
	Framework: leaderWorkerSetFramework,
	GVK:       leaderWorkerSetGVK,
	Plural:    "leaderworkersets",
	Pods:      true,
	Claims: []Path{
		{"spec", "leaderWorkerTemplate", "volumeClaimTemplates", each},
		{"spec", "leaderWorkerTemplate", "leaderTemplate", "spec", "volumes", each, "ephemeral"},
		{"spec", "leaderWorkerTemplate", "workerTemplate", "spec", "volumes", each, "ephemeral"},
	},
	ready: counted("readyReplicas"),
	ran:   counted("availableReplicas"), // its pods tell the rest
	Flow: []Path{
		{"spec", "replicas"}, {"spec", "leaderWorkerTemplate"}, {"spec", "rolloutStrategy"}, {"spec", "startupPolicy"}, {"spec", "networkConfig"},
	},
	workloads:    lwsWorkloads,
	sameRevision: sameGroupRevision,
	project: func(set *unstructured.Unstructured) {
		markTemplate(set, "spec", "leaderWorkerTemplate", "leaderTemplate")
		markTemplate(set, "spec", "leaderWorkerTemplate", "workerTemplate")
	},
	Doc: Doc{
		Status: setStatus, Needs: "LeaderWorkerSet. The manager needs its controller too",
		Flow: "All replicas are on one worker; new ones join them there. A rollout is done on the manager when it is on the worker. With `maxSurge` Kueue 0.19 never finishes one, also on a cluster of its own",
	},
}

// lwsWorkloads: Kueue makes one Workload for each replica.
func lwsWorkloads(set *unstructured.Unstructured) int {
	replicas, found, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return int(replicas)
}

// ReplicaOf is the index of the replica that a Workload of a set is for; -1 when it says none.
func ReplicaOf(wl *kueue.Workload) int {
	index, err := strconv.Atoi(wl.Annotations[componentIndex])
	if err != nil {
		return -1
	}
	return index
}

// sameRevision: while a rollout is on, a pod of the newest revision on the manager
// is not shown as one of an earlier revision on the worker is, lest the rollout
// seem done before it is.
func sameRevision(set, pod, worker *unstructured.Unstructured) bool {
	newest, _, _ := unstructured.NestedString(set.Object, "status", "updateRevision")
	observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
	made := worker.GetAnnotations()[templateAnnotation]
	if made == "" || observed != set.GetGeneration() || pod.GetLabels()[appsv1.ControllerRevisionHashLabelKey] != newest {
		return true
	}
	template, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
	return made == hashOf(template)
}

// sameGroupRevision: while a rollout is on, a pod that the manager made for it waits
// for one of the present template on the worker. LWS leaves replicas below the
// partition as they are, and those made before the rollout show what they always did.
func sameGroupRevision(set, pod, worker *unstructured.Unstructured) bool {
	made := worker.GetAnnotations()[templateAnnotation]
	if made == "" || podStarted(pod) || belowPartition(set, pod) {
		return true
	}
	return made == hashOf(groupTemplate(set, pod))
}

func belowPartition(set, pod *unstructured.Unstructured) bool {
	partition, _, _ := unstructured.NestedInt64(set.Object, "spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
	replica, err := strconv.ParseInt(pod.GetLabels()[groupIndex], 10, 64)
	return err == nil && replica < partition
}

// groupTemplate is what the set makes the pod from.
func groupTemplate(set, pod *unstructured.Unstructured) map[string]any {
	if pod.GetLabels()[workerIndex] == "0" {
		if leader, found, _ := unstructured.NestedMap(set.Object, "spec", "leaderWorkerTemplate", "leaderTemplate"); found {
			return leader
		}
	}
	template, _, _ := unstructured.NestedMap(set.Object, "spec", "leaderWorkerTemplate", "workerTemplate")
	return template
}

// markTemplate puts the marks of a copy on the pods that the worker makes from it.
func markTemplate(set *unstructured.Unstructured, template ...string) {
	at, found, _ := unstructured.NestedMap(set.Object, template...)
	if !found {
		return
	}
	hash := hashOf(at)
	t := &unstructured.Unstructured{Object: at}
	labels, annotations := withoutOurs(t.GetLabels()), withoutOurs(t.GetAnnotations())
	labels[kueue.MultiKueueOriginLabel] = set.GetLabels()[kueue.MultiKueueOriginLabel]
	for _, mark := range []string{kueue.MultiKueueOriginUIDAnnotation, JobAnnotation, WorkerAnnotation} {
		annotations[mark] = set.GetAnnotations()[mark]
	}
	annotations[templateAnnotation] = hash
	t.SetLabels(labels)
	t.SetAnnotations(annotations)
	// The parents are there: the API server validated the object.
	_ = unstructured.SetNestedMap(set.Object, at, template...)
}
