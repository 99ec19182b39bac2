package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kubeflowJobs are the kinds of the Training Operator v1; they differ in nothing
// that matters here.
func kubeflowJobs() []Kind {
	var rows []Kind
	for _, name := range []string{"PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"} {
		replicas := strings.ToLower(strings.TrimSuffix(name, "Job")) + "ReplicaSpecs"
		if name == "XGBoostJob" {
			replicas = "xgbReplicaSpecs"
		}
		row := runPolicyJob("v1", name, replicas, "kubeflow.org/training-operator", Doc{Drop: selfDeleting, Needs: "Kubeflow Training Operator v1"},
			// Its operator reads these anew each time that it looks at the job.
			Path{"spec", "runPolicy", "activeDeadlineSeconds"}, Path{"spec", "runPolicy", "backoffLimit"})
		if name == "JAXJob" {
			row.Unlinked = true
			row.Doc.Needs += ", and no LocalQueue called `default` in the job's namespace: Kueue 0.19 would give it to the copy before Ferry gives it the right one"
		}
		rows = append(rows, row)
	}
	return rows
}

var mpiJob = runPolicyJob("v2beta1", "MPIJob", "mpiReplicaSpecs", "kubeflow.org/mpi-operator", Doc{
	Drop:  "The worker would delete the launcher by itself, perhaps before its result was seen.",
	Flow:  "None: the operator writes limits into the launcher when it makes it, and never again.",
	Needs: "MPI Operator; a Training Operator beside it must not own MPIJob (`--enable-scheme` without it)",
})

// runPolicyJob is a kind of group kubeflow.org, whose replicas are in that field of the spec.
func runPolicyJob(version, kind, replicas, operator string, doc Doc, flow ...Path) Kind {
	lower := strings.ToLower(kind)
	return Kind{
		Framework:  "kubeflow.org/" + lower,
		GVK:        schema.GroupVersionKind{Group: "kubeflow.org", Version: version, Kind: kind},
		Plural:     lower + "s",
		ManagedBy:  Path{"spec", "runPolicy", "managedBy"},
		OwnManager: operator,
		Suspend:    Path{"spec", "runPolicy", "suspend"},
		Drop:       []Path{{"spec", "runPolicy", "ttlSecondsAfterFinished"}},
		Templates:  []Path{{"spec", replicas, each, "template"}},
		Running:    []Path{{"replicaStatuses", each, "active"}},
		Flow:       flow,
		ended:      whenTrue("Succeeded", "Failed"),
		ready:      counted("active", "succeeded"), // its active pods are those that run
		ran:        counted("failed"),
		Doc:        doc,
	}
}

var trainJob = Kind{
	Framework:  "trainer.kubeflow.org/trainjob",
	GVK:        schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
	Plural:     "trainjobs",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: "trainer.kubeflow.org/trainjob-controller",
	Suspend:    Path{"spec", "suspend"},
	project:    dropKueuesPatch,
	Running:    []Path{{"jobsStatus", each, "active"}},
	ended:      whenTrue("Complete", "Failed"),
	ready:      counted("ready", "succeeded"),
	ran:        counted("active", "failed"),
	Doc: Doc{
		Drop: "The entry of `spec.runtimePatches` that Kueue on the manager wrote: Kueue on the worker writes its own.",
		Needs: "Kubeflow Trainer v2 with JobSet, and the runtime that the job names. Kueue reads runtimes on the manager too: " +
			"they must be there as well, and ask for the same resources",
	},
}

// dropKueuesPatch removes what Kueue adds to every TrainJob at creation.
func dropKueuesPatch(job *unstructured.Unstructured) {
	patches, _, _ := unstructured.NestedSlice(job.Object, "spec", "runtimePatches")
	var kept []any
	for _, p := range patches {
		if patch, _ := p.(map[string]any); patch["manager"] != "kueue.x-k8s.io/manager" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		unstructured.RemoveNestedField(job.Object, "spec", "runtimePatches")
		return
	}
	// The list came from this very place.
	_ = unstructured.SetNestedSlice(job.Object, kept, "spec", "runtimePatches")
}
