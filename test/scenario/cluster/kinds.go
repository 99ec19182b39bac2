package cluster

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of jobs that a cluster has, and what some are made of.
var (
	Job = batchv1.SchemeGroupVersion.WithKind("Job")
	Set = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	Pod = corev1.SchemeGroupVersion.WithKind("Pod")
)

// JobKinds are the kinds of jobs. The jobs of a namespace have different names, whatever their kinds.
var JobKinds = []schema.GroupVersionKind{Job, Set}

// Dispatched are all kinds that Ferry watches beside Workloads.
var Dispatched = []schema.GroupVersionKind{Job, Set, Pod}

// resources are the API's paths.
var resources = map[string]schema.GroupResource{
	Job.Kind: {Group: Job.Group, Resource: "jobs"},
	Set.Kind: {Group: Set.Group, Resource: "leaderworkersets"},
	Pod.Kind: {Group: Pod.Group, Resource: "pods"},
}
