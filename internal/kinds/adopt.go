package kinds

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Unmarked tells whether an object on a worker has a multikueue origin and none of
// Ferry's marks, as what MultiKueue made.
func Unmarked(obj metav1.Object) bool {
	return obj.GetLabels()[kueue.MultiKueueOriginLabel] != "" && obj.GetAnnotations()[JobAnnotation] == ""
}

// MadeFor tells whether an unmarked object on a worker was made for this job of the
// manager: it has its kind and name, is tied to one of its Workloads, and where
// MultiKueue noted the UID, it is the job's. Kueue puts the job's UID into the names
// of Workloads, but for those of pod groups.
func (k *Kind) MadeFor(c, job *unstructured.Unstructured, wls []*kueue.Workload) bool {
	uid := c.GetAnnotations()[kueue.MultiKueueOriginUIDAnnotation]
	if RefOf(c) != RefOf(job) || c.GetName() != job.GetName() || (uid != "" && uid != string(job.GetUID())) {
		return false
	}
	if k.workloads != nil {
		return uid != "" // there is no link
	}
	return slices.ContainsFunc(wls, func(wl *kueue.Workload) bool { return wl.Name == LinkedTo(c) })
}

// AdoptedWorkload returns the copy that MultiKueue made of a Workload with the marks of one that Ferry made.
func AdoptedWorkload(c, wl *kueue.Workload, job Ref, m Marks) *kueue.Workload {
	out := c.DeepCopy()
	put := marksFor(wl, job, m)
	put[SpecHashAnnotation] = SpecHash(c)
	if isElastic(wl) && c.Annotations[replacementAnnotation] == "" {
		put[replacementAnnotation] = nothing
	}
	addAnnotations(out, put)
	return out
}

// Adopted returns the copy that MultiKueue made of a job with the marks of one that
// Ferry made. The template of a set stays as it is, for a changed one restarts pods;
// and what the manager's says is taken for followed, lest the marks go in that way.
func (k *Kind) Adopted(c, job *unstructured.Unstructured, m Marks) *unstructured.Unstructured {
	out := c.DeepCopy()
	put := marksFor(job, RefOf(job), m)
	if k.Pods {
		put[generationAnnotation] = strconv.FormatInt(job.GetGeneration(), 10)
	}
	addAnnotations(out, put)
	return out
}

func addAnnotations(obj metav1.Object, put map[string]string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for name, value := range put {
		annotations[name] = value
	}
	obj.SetAnnotations(annotations)
}

// MarksPods tells whether the pods that a copy of a set makes have the marks of their
// set by themselves. Those of an adopted one get them one by one.
func (k *Kind) MarksPods(set *unstructured.Unstructured) bool {
	found := false
	for _, path := range podTemplates {
		template, has, _ := unstructured.NestedMap(set.Object, path...)
		found = found || has
		if has && (&unstructured.Unstructured{Object: template}).GetAnnotations()[JobAnnotation] != "" {
			return true
		}
	}
	return !found
}

// podTemplates are where sets have their pods' templates.
var podTemplates = []Path{
	{"spec", "template"}, {"spec", "leaderWorkerTemplate", "workerTemplate"}, {"spec", "leaderWorkerTemplate", "leaderTemplate"},
}

// PodSelector finds the pods of a set on its cluster, whether they are marked or not.
func PodSelector(set *unstructured.Unstructured) labels.Selector {
	if set.GroupVersionKind().GroupKind() == leaderWorkerSetGVK.GroupKind() {
		return labels.SelectorFromSet(labels.Set{lwsNameLabel: set.GetName()})
	}
	match, _, _ := unstructured.NestedStringMap(set.Object, "spec", "selector", "matchLabels")
	if len(match) == 0 {
		return labels.Nothing()
	}
	return labels.SelectorFromSet(match)
}

// MarkPod puts the marks on a worker's pod by which it is known as one of a set of ours.
func MarkPod(pod metav1.Object, set *unstructured.Unstructured) {
	put := map[string]string{}
	for _, mark := range []string{kueue.MultiKueueOriginUIDAnnotation, JobAnnotation, WorkerAnnotation} {
		put[mark] = set.GetAnnotations()[mark]
	}
	addAnnotations(pod, put)
	labels := pod.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[kueue.MultiKueueOriginLabel] = set.GetLabels()[kueue.MultiKueueOriginLabel]
	pod.SetLabels(labels)
}
