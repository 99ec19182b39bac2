package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	kubeRay      = "ray.io/kuberay-operator"
	needsKubeRay = "KubeRay"
)

func rayKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: kind}
}

var rayJob = Kind{
	Framework:  "ray.io/rayjob",
	GVK:        rayKind("RayJob"),
	Plural:     "rayjobs",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: kubeRay,
	Suspend:    Path{"spec", "suspend"},
	Drop:       []Path{{"spec", "deletionStrategy"}},
	Templates:  append(rayTemplates("spec", "rayClusterSpec"), Path{"spec", "submitterPodTemplate"}),
	project:    keepAfterFinish,
	leftAlone:  usesACluster,
	// A refused one never runs until it is made anew; Kueue holds it back for ever.
	ended:   whenField("jobDeploymentStatus", "Complete", "Failed", "ValidationFailed"),
	ready:   whenField("jobDeploymentStatus", "Running"),
	ran:     eitherOf(rayRan, counted("succeeded", "failed")),
	Stopped: map[string]any{"jobDeploymentStatus": "Suspended", "succeeded": int64(0), "failed": int64(0)}, // the counters are the CRD's defaults
	resize:  resizeWorkers("spec", "rayClusterSpec"),
	Doc: Doc{
		Drop: "It may delete the RayJob by itself. `shutdownAfterJobFinishes` stays, as Kueue demands it; `ttlSecondsAfterFinished` is raised to 15 minutes " +
			"where it is less: an operator told to delete the RayJob with its cluster would take the result away before it was seen. Ferry removes both once it was.",
		Flow:  "None. A RayJob with `clusterSelector` is not dispatched, as Kueue makes no Workload for it: submit it where its cluster is, without a queue",
		Needs: needsKubeRay,
	},
}

// rayTemplates are the pod templates of a Ray cluster's spec that is at a path.
func rayTemplates(spec ...string) []Path {
	return []Path{slices.Concat(spec, Path{"headGroupSpec", "template"}), slices.Concat(spec, Path{"workerGroupSpecs", each, "template"})}
}

// usesACluster: the quota of a cluster that is there already is not the job's.
func usesACluster(job *unstructured.Unstructured) string {
	if selector, _, _ := unstructured.NestedMap(job.Object, "spec", "clusterSelector"); len(selector) > 0 {
		return "it uses a RayCluster that exists (spec.clusterSelector)"
	}
	return ""
}

// keepFor is as long as a worker may be lost before its jobs run elsewhere, in seconds.
const keepFor = 15 * 60

// keepAfterFinish keeps the operator from shutting the cluster down at once: it
// may be set to delete the RayJob with it.
func keepAfterFinish(job *unstructured.Unstructured) {
	shutdown, _, _ := unstructured.NestedBool(job.Object, "spec", "shutdownAfterJobFinishes")
	ttl, _, _ := unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished")
	if shutdown && ttl < keepFor {
		// The parent holds the field that was just read.
		_ = unstructured.SetNestedField(job.Object, int64(keepFor), "spec", "ttlSecondsAfterFinished")
	}
}

var rayCluster = Kind{
	Framework:  "ray.io/raycluster",
	GVK:        rayKind("RayCluster"),
	Plural:     "rayclusters",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: kubeRay,
	Suspend:    Path{"spec", "suspend"},
	Templates:  rayTemplates("spec"),
	Endless:    true,
	Stopped:    map[string]any{"state": "suspended"},
	ready:      whenField("state", "ready"),
	ran:        rayRan,
	resize:     resizeWorkers("spec"),
	Doc: Doc{
		Flow: "With the annotation `kueue.x-k8s.io/elastic-job: \"true\"`, the `replicas` of worker groups and their bounds: growth once the worker has " +
			"quota for it, and no pod that runs is restarted. Without it changed `replicas` are another request for quota: Kueue on the manager stops the cluster and " +
			"queues it anew, and the next copy has them.",
		Needs: needsKubeRay,
	},
}

var rayService = Kind{
	Framework:  "ray.io/rayservice",
	GVK:        rayKind("RayService"),
	Plural:     "rayservices",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: kubeRay,
	Suspend:    Path{"spec", "rayClusterConfig", "suspend"},
	Templates:  rayTemplates("spec", "rayClusterConfig"),
	Flow:       []Path{{"spec", "serveConfigV2"}},
	Endless:    true,
	Stopped:    map[string]any{},
	ready:      whenTrue("Ready"),
	ran:        rayRan,
	resize:     resizeWorkers("spec", "rayClusterConfig"),
	Doc: Doc{
		Flow:  "A changed cluster is another request for quota: Kueue on the manager stops the service and queues it anew.",
		Needs: needsKubeRay,
	},
}

// rayRan goes by the workers that are ready and by the head, which comes first.
func rayRan(job *unstructured.Unstructured) bool {
	return counted("readyWorkerReplicas", "availableWorkerReplicas")(job) || hasHead(statusOf(job))
}

// hasHead finds the address of a head, which it has once its pod runs: in the status of a cluster, wherever that is.
func hasHead(status map[string]any) bool {
	for name, field := range status {
		inner, isMap := field.(map[string]any)
		if isMap && (name == "head" && inner["podIP"] != nil && inner["podIP"] != "" || hasHead(inner)) {
			return true
		}
	}
	return false
}
