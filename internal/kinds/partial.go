package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// syncCompletions is Kueue's annotation on a Job whose completions follow its parallelism; its API does not export it.
const syncCompletions = "kueue.x-k8s.io/job-completions-equal-parallelism"

// grant brings a copy to so many pods in each pod set as the manager has quota for.
type grant func(out *unstructured.Unstructured, pods map[string]int64)

// reduced are the pod sets for which Kueue on the manager admitted fewer pods than they ask for, and how many. A worker
// must not run more: the manager's quota would not cover them.
func reduced(wl *kueue.Workload) map[string]int64 {
	pods := map[string]int64{}
	if wl.Status.Admission == nil {
		return pods
	}
	for _, set := range wl.Spec.PodSets {
		for _, a := range wl.Status.Admission.PodSetAssignments {
			if set.MinCount != nil && a.Name == set.Name && a.Count != nil && *a.Count < set.Count {
				pods[string(set.Name)] = int64(*a.Count)
			}
		}
	}
	return pods
}

// asGranted is the spec of a Workload with no more pods than the manager has quota for.
func asGranted(wl *kueue.Workload) *kueue.WorkloadSpec {
	spec := wl.Spec // shallow: what is changed below is the result's own
	pods := reduced(wl)
	if len(pods) == 0 {
		return &spec
	}
	spec.PodSets = slices.Clone(spec.PodSets)
	for i := range spec.PodSets {
		if n, is := pods[string(spec.PodSets[i].Name)]; is {
			spec.PodSets[i].Count = int32(n)
		}
	}
	return &spec
}

// grantJob sets the parallelism, and the completions with it where the user says so.
func grantJob(out *unstructured.Unstructured, pods map[string]int64) {
	for _, n := range pods {
		// The parent is a spec that the API server validated, so this cannot fail.
		_ = unstructured.SetNestedField(out.Object, n, "spec", "parallelism")
		if out.GetAnnotations()[syncCompletions] == "true" {
			_ = unstructured.SetNestedField(out.Object, n, "spec", "completions")
		}
	}
}
