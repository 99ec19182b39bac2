package kinds

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Kueue's labels and annotations on what it starts. Its API packages do not export them all. The first names the pod set.
const (
	podSetLabel       = "kueue.x-k8s.io/podset"
	localQueueLabel   = "kueue.x-k8s.io/local-queue-name"
	clusterQueueLabel = "kueue.x-k8s.io/cluster-queue-name"
)

var (
	startLabels      = []string{podSetLabel, localQueueLabel, clusterQueueLabel, kueue.MultiKueueWorkerWorkloadPodLabel}
	startAnnotations = []string{kueue.WorkloadAnnotation, kueue.WorkloadSliceNameAnnotation, kueue.PodSetUnconstrainedTopologyAnnotation}
)

// unstart takes out of a copy what Kueue on the manager wrote into pods and pod templates when it started the job
// there: node selectors and tolerations of its flavors, its queues' names, what other admission checks asked for. Kueue
// adds only, so whatever the Workload's pod sets do not have is its own.
func (k *Kind) unstart(out *unstructured.Unstructured, wl *kueue.Workload) {
	for _, path := range k.Templates {
		eachAt(out.Object, path, func(template map[string]any) { unstartTemplate(template, wl) })
	}
}

// each stands in a path for every element of a list or a map.
const each = "*"

// eachAt calls f with every object that a path leads to.
func eachAt(at any, path Path, f func(map[string]any)) {
	object, isObject := at.(map[string]any)
	if len(path) == 0 {
		if isObject {
			f(object)
		}
		return
	}
	switch list, isList := at.([]any); {
	case isObject && path[0] == each:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			eachAt(object[name], path[1:], f)
		}
	case isList && path[0] == each:
		for _, element := range list {
			eachAt(element, path[1:], f)
		}
	case isObject:
		eachAt(object[path[0]], path[1:], f)
	}
}

func unstartTemplate(template map[string]any, wl *kueue.Workload) {
	t := &unstructured.Unstructured{Object: template}
	labels, annotations := t.GetLabels(), t.GetAnnotations()
	name := labels[podSetLabel]
	i := slices.IndexFunc(wl.Spec.PodSets, func(set kueue.PodSet) bool { return name != "" && string(set.Name) == name })
	if i < 0 {
		return // not started
	}
	was := &wl.Spec.PodSets[i].Template
	addedLabels, addedAnnotations := slices.Clone(startLabels), slices.Clone(startAnnotations)
	for _, update := range updatesOf(wl, wl.Spec.PodSets[i].Name) {
		addedLabels = slices.AppendSeq(addedLabels, maps.Keys(update.Labels))
		addedAnnotations = slices.AppendSeq(addedAnnotations, maps.Keys(update.Annotations))
	}
	t.SetLabels(without(labels, addedLabels, was.Labels))
	t.SetAnnotations(without(annotations, addedAnnotations, was.Annotations))
	if metadata, isObject := template["metadata"].(map[string]any); isObject && len(metadata) == 0 {
		delete(template, "metadata")
	}
	if spec, isObject := template["spec"].(map[string]any); isObject {
		unstartSpec(spec, &was.Spec)
	}
}

// AsSubmitted returns a slice of an elastic job with the pod templates that its job was submitted with. Kueue on the
// manager takes those of a further slice from the job that runs there, with all that it wrote into it; earlier
// slices, or their copies, have them as they were. Others are left as they are.
func AsSubmitted(wl *kueue.Workload, earlier []*kueue.Workload) *kueue.Workload {
	out := wl
	for i, set := range wl.Spec.PodSets {
		template := templateOf(earlier, set.Name)
		if !isStarted(set) || template == nil {
			continue
		}
		if out == wl {
			out = wl.DeepCopy()
		}
		out.Spec.PodSets[i].Template = *template.DeepCopy()
	}
	return out
}

func templateOf(wls []*kueue.Workload, name kueue.PodSetReference) *corev1.PodTemplateSpec {
	for _, wl := range wls {
		for i, set := range wl.Spec.PodSets {
			// Copies are cached without their containers, and with what else a template has left out.
			if set.Name == name && !isStarted(set) && len(set.Template.Spec.Containers) > 0 {
				return &wl.Spec.PodSets[i].Template
			}
		}
	}
	return nil
}

func isStarted(set kueue.PodSet) bool { return set.Template.Labels[podSetLabel] == string(set.Name) }

// updatesOf is what the admission checks ask for a pod set.
func updatesOf(wl *kueue.Workload, set kueue.PodSetReference) []kueue.PodSetUpdate {
	var updates []kueue.PodSetUpdate
	for _, check := range wl.Status.AdmissionChecks {
		for _, update := range check.PodSetUpdates {
			if update.Name == set {
				updates = append(updates, update)
			}
		}
	}
	return updates
}

// without leaves out the added keys that were not there before.
func without(now map[string]string, added []string, was map[string]string) map[string]string {
	kept := maps.Clone(now)
	for _, key := range added {
		if _, had := was[key]; !had {
			delete(kept, key)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func unstartSpec(spec map[string]any, was *corev1.PodSpec) {
	if selector, is := spec["nodeSelector"].(map[string]any); is {
		maps.DeleteFunc(selector, func(key string, _ any) bool { _, had := was.NodeSelector[key]; return !had })
		if len(selector) == 0 {
			delete(spec, "nodeSelector")
		}
	}
	keepOf(spec, "tolerations", was.Tolerations)
	keepOf(spec, "schedulingGates", was.SchedulingGates)
}

// keepOf leaves of a list what was in it before.
func keepOf[T any](spec map[string]any, field string, was []T) {
	now, _ := spec[field].([]any)
	kept := slices.DeleteFunc(slices.Clone(now), func(element any) bool {
		object, _ := element.(map[string]any)
		var is T
		// The API server validated it as such.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object, &is)
		return !slices.ContainsFunc(was, func(w T) bool { return equality.Semantic.DeepEqual(is, w) })
	})
	if len(kept) == 0 {
		delete(spec, field)
		return
	}
	spec[field] = kept
}
