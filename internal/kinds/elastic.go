package kinds

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Wire names of Kueue's elastic jobs that its API packages do not export.
const (
	elasticAnnotation     = "kueue.x-k8s.io/elastic-job"
	replacementAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"
)

// nothing stands for the slice that a first slice replaces. No Workload's key,
// which has a slash, is like it.
const nothing = "none"

// resize brings a copy of an elastic job to the size of a slice: so many pods in each pod set.
type resize func(out, original *unstructured.Unstructured, pods map[string]int64)

// Elastic tells whether the job grows and shrinks while it runs. Kueue then has
// several Workloads for it, slices: the next for each growth, which replaces the
// one before; a slice that shrinks stays.
func (k *Kind) Elastic(job *unstructured.Unstructured) bool {
	return k.resize != nil && isElastic(job)
}

func isElastic(obj metav1.Object) bool { return obj.GetAnnotations()[elasticAnnotation] == "true" }

// fit brings the copy of an elastic job to the size of its Workload, and that of one which may run with fewer pods to
// what the manager has quota for.
func (k *Kind) fit(out, job *unstructured.Unstructured, wl *kueue.Workload) {
	switch {
	case k.Elastic(job) && isElastic(wl):
		k.resize(out, job, podsOf(wl))
	case k.grant != nil && len(reduced(wl)) > 0:
		k.grant(out, reduced(wl))
	}
}

// Replaces is the name of the Workload in whose place a slice comes; empty for a first one.
func Replaces(wl *kueue.Workload) string {
	_, name, _ := strings.Cut(wl.Annotations[replacementAnnotation], "/")
	return name
}

// Outgrown tells whether a slice of an elastic job wants more pods than its copy has, in any pod set. Of other
// Workloads the spec's hash tells.
func Outgrown(c, wl *kueue.Workload) bool {
	if !isElastic(wl) {
		return false
	}
	have := podsOf(c)
	for name, want := range podsOf(wl) {
		if want > have[name] {
			return true
		}
	}
	return false
}

func podsOf(wl *kueue.Workload) map[string]int64 {
	pods := map[string]int64{}
	for _, set := range wl.Spec.PodSets {
		pods[string(set.Name)] = int64(set.Count)
	}
	return pods
}

// LinkedTo names the Workload that a copy of a job is tied to.
func LinkedTo(job metav1.Object) string {
	if name := job.GetLabels()[PrebuiltWorkload]; name != "" {
		return name
	}
	return job.GetAnnotations()[PrebuiltWorkload]
}

// Sliced returns the copy of an elastic job as it runs by the slice wl: tied to it, marked
// with its reservation, and of its size, whatever size the original wants by now. Nil when it is so already.
func (k *Kind) Sliced(current, original *unstructured.Unstructured, wl *kueue.Workload, reservation string) *unstructured.Unstructured {
	out := Remarked(current, reservation)
	linkPrebuilt(out, wl.Name)
	k.resize(out, original, podsOf(wl))
	if equality.Semantic.DeepEqual(out.Object, current.Object) {
		return nil
	}
	return out
}

// resizeJob sets the parallelism, and the completions with it where the original keeps the two equal.
func resizeJob(out, original *unstructured.Unstructured, pods map[string]int64) {
	n, found := pods[string(kueue.DefaultPodSetName)]
	if !found {
		return
	}
	follow := canShrink(jobOf(original))
	// The parents are there: the API server validated the object.
	_ = unstructured.SetNestedField(out.Object, n, "spec", "parallelism")
	if follow {
		_ = unstructured.SetNestedField(out.Object, n, "spec", "completions")
	}
}

// resizeWorkers sets the replicas of a Ray cluster's worker groups, whose spec is at a path, with
// their bounds. Kueue's pod sets are called like the groups.
func resizeWorkers(spec ...string) resize {
	path := append(spec, "workerGroupSpecs")
	return func(out, original *unstructured.Unstructured, pods map[string]int64) {
		groups, _, _ := unstructured.NestedSlice(out.Object, path...)
		originals, _, _ := unstructured.NestedSlice(original.Object, path...)
		for _, g := range groups {
			group, _ := g.(map[string]any)
			n, found := pods[podSetOf(group)]
			if !found {
				continue
			}
			for _, o := range originals {
				if like, _ := o.(map[string]any); podSetOf(like) == podSetOf(group) {
					copyField(group, like, "minReplicas")
					copyField(group, like, "maxReplicas")
					followHosts(group, like, n)
				}
			}
			group["replicas"] = n / hostsOf(group)
		}
		if len(groups) > 0 {
			_ = unstructured.SetNestedSlice(out.Object, groups, path...)
		}
	}
}

// followHosts takes over how many hosts a replica has where the original asks for these very
// pods, which are the hosts of all replicas. Otherwise it wants something else by now.
func followHosts(group, like map[string]any, pods int64) {
	replicas, said := like["replicas"].(int64)
	if !said {
		replicas = 1
	}
	if hosts := hostsOf(like); replicas*hosts == pods && hosts != hostsOf(group) {
		group["numOfHosts"] = hosts
	}
}

func hostsOf(group map[string]any) int64 {
	hosts, _ := group["numOfHosts"].(int64)
	return max(hosts, 1)
}

// podSetOf is what Kueue calls a worker group's pod set.
func podSetOf(group map[string]any) string {
	name, _ := group["groupName"].(string)
	return strings.ToLower(name)
}
