package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var appWrapper = Kind{
	Framework:  "workload.codeflare.dev/appwrapper",
	GVK:        schema.GroupVersionKind{Group: "workload.codeflare.dev", Version: "v1beta2", Kind: "AppWrapper"},
	Plural:     "appwrappers",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: "workload.codeflare.dev/appwrapper-controller",
	Suspend:    Path{"spec", "suspend"},
	Drop:       []Path{{"metadata", "annotations", "workload.codeflare.dev.appwrapper/successTTLDuration"}},
	project:    dropPodSetInfos,
	ended:      wrapperEnded,
	ready:      whenTrue("PodsReady"),
	ran:        always, // some of its pods may run while that is false
	Stopped:    map[string]any{"phase": "Suspended"},
	Doc: Doc{
		Drop: selfDeleting + " So do the `podSetInfos` of components, by which Kueue on the manager started it there.",
		Needs: "AppWrapper, and the operators of what is wrapped. AppWrapper lets only those wrap a kind who may create it, and on the worker that is Ferry: " +
			"set `userRBACAdmissionCheck: false` there, or allow Ferry's account to create those kinds",
	},
}

// dropPodSetInfos removes what Kueue on the manager writes when it starts the job there.
func dropPodSetInfos(job *unstructured.Unstructured) {
	eachAt(job.Object, Path{"spec", "components", each}, func(component map[string]any) { delete(component, "podSetInfos") })
}

// wrapperEnded goes, as Kueue does, by the phase, and takes a failed one for over
// only when what it wraps is gone.
func wrapperEnded(job *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(job.Object, "status", "phase")
	return phase == "Succeeded" || phase == "Failed" && !whenTrue("ResourcesDeployed")(job)
}
