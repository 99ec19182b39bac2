package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// LeanCopy takes out of a Workload on a worker what no decision reads: the mark of that very worker, and the pods, where
// the mark of the spec tells as much as they would; of an elastic job's their number stays. The copies of a job are then
// much alike on all workers.
func LeanCopy(worker string, c *kueue.Workload) {
	c.Status.ResourceRequests = nil
	if c.Annotations[WorkerAnnotation] == worker {
		delete(c.Annotations, WorkerAnnotation)
	}
	if mark := c.Annotations[SpecHashAnnotation]; mark == "" || mark != SpecHash(c) {
		return
	}
	if !isElastic(c) {
		c.Spec.PodSets = nil
		return
	}
	c.Spec.PodSets = sizesOf(c)
}

// sizesOf are the pod sets with nothing but their names and how many pods they have.
func sizesOf(wl *kueue.Workload) []kueue.PodSet {
	sizes := make([]kueue.PodSet, len(wl.Spec.PodSets))
	for i, set := range wl.Spec.PodSets {
		sizes[i] = kueue.PodSet{Name: set.Name, Count: set.Count}
	}
	return sizes
}

// LeanWorkload takes out of a Workload on the manager what nobody reads: the pods of one that is finished, of which no
// copy is made any more, and the room that lists have to grow, for which a decoder leaves as much as three further pod
// sets take. A slice of an elastic job keeps its pods: the next one needs them, see AsSubmitted.
func LeanWorkload(wl *kueue.Workload) {
	if !isElastic(wl) && meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) {
		wl.Spec.PodSets = sizesOf(wl)
		return
	}
	wl.Spec.PodSets = slices.Clip(slices.Clone(wl.Spec.PodSets))
	for i := range wl.Spec.PodSets {
		pods := &wl.Spec.PodSets[i].Template.Spec
		pods.Containers, pods.InitContainers = slices.Clip(slices.Clone(pods.Containers)), slices.Clip(slices.Clone(pods.InitContainers))
	}
}

// Lean takes out of a job on the manager what nobody reads. One that is neither in a queue nor left to MultiKueue is none
// of Ferry's concern: of such a job only its name and its owners stay, for as long as it is so.
func (t *Table) Lean(job *unstructured.Unstructured) {
	i := slices.IndexFunc(t.rows, func(k *Kind) bool { return k.GVK == job.GroupVersionKind() && len(k.ManagedBy) > 0 })
	if i >= 0 && !t.rows[i].concerns(job) {
		keepName(job)
		return
	}
	unstructured.RemoveNestedField(job.Object, "metadata", "annotations", kubectlLastApplied)
}

func (k *Kind) concerns(job *unstructured.Unstructured) bool {
	labels, annotations := job.GetLabels(), job.GetAnnotations()
	manager, found, _ := unstructured.NestedString(job.Object, k.ManagedBy...)
	return labels[queueLabel] != "" || annotations[queueLabel] != "" || found && manager == k.ManagedByValue()
}

// keepName makes a new object, whose maps have no room for what was there.
func keepName(job *unstructured.Unstructured) {
	name := &unstructured.Unstructured{Object: map[string]any{}}
	name.SetGroupVersionKind(job.GroupVersionKind())
	name.SetNamespace(job.GetNamespace())
	name.SetName(job.GetName())
	name.SetUID(job.GetUID())
	name.SetResourceVersion(job.GetResourceVersion())
	name.SetCreationTimestamp(metav1.Time{Time: job.GetCreationTimestamp().Time})
	name.SetDeletionTimestamp(job.GetDeletionTimestamp())
	name.SetOwnerReferences(job.GetOwnerReferences()) // the webhook asks whose a job is
	*job = *name
}
