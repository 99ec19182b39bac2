package cluster

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/kinds"
)

// The kinds of jobs that a cluster has, and what some are made of.
var (
	Job = batchv1.SchemeGroupVersion.WithKind("Job")
	Set = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	Pod = corev1.SchemeGroupVersion.WithKind("Pod")
)

// JobKinds are the kinds of jobs. The jobs of a namespace have different names, whatever their kinds.
var JobKinds = []schema.GroupVersionKind{Job, Set, Pod}

// IsPart tells whether an object belongs to a job of another kind, as the pods of a set do.
func IsPart(obj client.Object) bool {
	return obj.GetAnnotations()[kinds.SuspendingParent] != ""
}

// resources are the API's paths.
var resources = map[string]schema.GroupResource{
	Job.Kind: {Group: Job.Group, Resource: "jobs"},
	Set.Kind: {Group: Set.Group, Resource: "leaderworkersets"},
	Pod.Kind: {Group: Pod.Group, Resource: "pods"},
}
