package kinds

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Marks are what Ferry writes on every object that it makes on a worker.
type Marks struct {
	// Origin identifies this manager cluster.
	Origin string
	// Worker is the name of the MultiKueueCluster that the copy is made for.
	Worker string
	// Reservation is the quota reservation on the manager that the copy serves.
	Reservation string
}

// Project returns the copy of job for a worker, tied to the copy of the Workload wl there.
func (k *Kind) Project(job *unstructured.Unstructured, wl *kueue.Workload, m Marks) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(k.GVK)
	for field, value := range job.DeepCopy().Object {
		if field != "metadata" && field != "status" {
			out.Object[field] = value
		}
	}
	out.SetNamespace(job.GetNamespace())
	out.SetName(job.GetName())
	k.putMarks(out, job, m)
	k.linkTo(out, wl)
	for _, path := range k.Drop {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	if len(k.ManagedBy) > 0 {
		unstructured.RemoveNestedField(out.Object, k.ManagedBy...)
	}
	if len(k.Suspend) > 0 {
		// The parent is a spec that the API server validated, so this cannot fail.
		_ = unstructured.SetNestedField(out.Object, k.suspended(), k.Suspend...)
	}
	k.unstart(out, wl)
	if k.project != nil {
		k.project(out)
	}
	k.fit(out, job, wl)
	return out
}

func (k *Kind) putMarks(out, job *unstructured.Unstructured, m Marks) {
	labels, annotations := marked(job, RefOf(job), m)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
}

// PreemptionGate is the gate on copies by which one worker at a time preempts for a job; the name is MultiKueue's.
const PreemptionGate = "kueue.x-k8s.io/multikueue"

// PreemptionTimeoutAnnotation on a MultiKueueConfig is how long a worker that may preempt for one of its jobs gets to
// admit it, as a Go duration.
const PreemptionTimeoutAnnotation = ferryPrefix + "preemption-timeout"

// PreemptionTimeout reads PreemptionTimeoutAnnotation; zero: the config has none. The error says what is wrong with it.
func PreemptionTimeout(config *kueue.MultiKueueConfig) (time.Duration, error) {
	text := config.Annotations[PreemptionTimeoutAnnotation]
	if text == "" {
		return 0, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 {
		return 0, fmt.Errorf("annotation %s: %q is no duration such as 90s or 5m; what Ferry's configuration says holds", PreemptionTimeoutAnnotation, text)
	}
	return timeout, nil
}

// ProjectWorkload returns the copy of a manager's Workload for a worker. The
// link to its job there is made by Kueue on the worker when the job arrives.
func ProjectWorkload(wl *kueue.Workload, job Ref, m Marks) *kueue.Workload {
	labels, annotations := marked(wl, job, m)
	delete(labels, JobUIDLabel)
	annotations[SpecHashAnnotation] = SpecHash(wl)
	if isElastic(wl) && annotations[replacementAnnotation] == "" {
		// Kueue compares the job with a slice that replaces nothing, and ends the slice when they differ. When both
		// shrink they differ for a moment.
		annotations[replacementAnnotation] = nothing
	}
	out := &kueue.Workload{
		TypeMeta:   metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{Namespace: wl.Namespace, Name: wl.Name, Labels: labels, Annotations: annotations},
		Spec:       *asGranted(wl).DeepCopy(),
	}
	out.Spec.PreemptionGates = nil
	out.Spec.PriorityClassRef = detached(wl.Spec.PriorityClassRef)
	active := true
	out.Spec.Active = &active
	return out
}

// detached is the reference to a class as a copy has it: Kueue on the worker lets a Workload follow a
// WorkloadPriorityClass of that name there, and a job's label, whatever these are worth on the manager. One that names
// a pod's class keeps the priority that it was given. Kueue lets nobody change the name while it has quota.
func detached(ref *kueue.PriorityClassRef) *kueue.PriorityClassRef {
	if ref == nil {
		return nil
	}
	return kueue.NewPodPriorityClassRef(ref.Name)
}

// SpecHash identifies what of a Workload's spec must be equal on manager and
// worker. Priority is followed by updates, a deactivated Workload is evicted on
// the manager, and preemption gates are each cluster's own, so they do not count;
// nor does the size of an elastic job, see Outgrown.
func SpecHash(wl *kueue.Workload) string { return hashOf(comparedSpec(wl, &wl.Spec)) }

// SameSpec tells whether a copy on a worker is still of what the manager's Workload
// wants. The mark only saves work: it is a hash of Go types, so that a newer build
// gives another one for the same spec. Where it differs, the specs themselves tell.
func SameSpec(c, wl *kueue.Workload) bool {
	return c.Annotations[SpecHashAnnotation] == SpecHash(wl) || equality.Semantic.DeepEqual(comparedSpec(c, &c.Spec), comparedSpec(wl, asGranted(wl)))
}

// comparedSpec is what SpecHash and SameSpec go by.
func comparedSpec(wl *kueue.Workload, of *kueue.WorkloadSpec) *kueue.WorkloadSpec {
	spec := *of // shallow: what is changed below is the result's own
	spec.Priority, spec.PriorityClassRef, spec.PreemptionGates, spec.Active = nil, nil, nil, nil
	if isElastic(wl) {
		spec.PodSets = slices.Clone(spec.PodSets)
		for i := range spec.PodSets {
			spec.PodSets[i].Count = 0
		}
	}
	return &spec
}

func hashOf(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		// What came from JSON always goes back.
		return "unhashable"
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// marked returns the labels and annotations for a copy of obj: those of obj
// without what belongs to the manager alone, and with Ferry's marks, which win
// over anything that a user wrote under the same names.
func marked(obj metav1.Object, job Ref, m Marks) (labels, annotations map[string]string) {
	labels, annotations = withoutOurs(obj.GetLabels()), withoutOurs(obj.GetAnnotations())
	delete(annotations, kubectlLastApplied)
	labels[kueue.MultiKueueOriginLabel] = m.Origin
	maps.Copy(annotations, marksFor(obj, job, m))
	return labels, annotations
}

// marksFor are the annotations that tell what a copy of obj is.
func marksFor(obj metav1.Object, job Ref, m Marks) map[string]string {
	return map[string]string{
		kueue.MultiKueueOriginUIDAnnotation: string(obj.GetUID()),
		JobAnnotation:                       job.Kind + "/" + job.Name,
		ReservationAnnotation:               m.Reservation,
		WorkerAnnotation:                    m.Worker,
	}
}

func withoutOurs(from map[string]string) map[string]string {
	to := map[string]string{}
	for name, value := range from {
		if !strings.HasPrefix(name, ferryPrefix) {
			to[name] = value
		}
	}
	return to
}

// linkTo ties a copy to the copy of its Workload, where Kueue does so by a link.
func (k *Kind) linkTo(out *unstructured.Unstructured, wl *kueue.Workload) {
	switch {
	case k.Unlinked:
		unstructured.RemoveNestedField(out.Object, "metadata", "labels", queueLabel)
	case k.workloads == nil:
		linkPrebuilt(out, wl.Name)
	}
}

// linkPrebuilt ties a job to an existing Workload on its cluster. A label value
// holds at most 63 characters; longer names go to the annotation of the same name.
func linkPrebuilt(job *unstructured.Unstructured, workload string) {
	labels, annotations := job.GetLabels(), job.GetAnnotations()
	delete(labels, PrebuiltWorkload)
	delete(annotations, PrebuiltWorkload)
	if len(workload) <= validation.LabelValueMaxLength {
		labels[PrebuiltWorkload] = workload
	} else {
		annotations[PrebuiltWorkload] = workload
	}
	job.SetLabels(labels)
	job.SetAnnotations(annotations)
}

// Remarked returns the copy with another mark of its reservation.
func Remarked(job *unstructured.Unstructured, reservation string) *unstructured.Unstructured {
	out := job.DeepCopy()
	annotations := out.GetAnnotations()
	annotations[ReservationAnnotation] = reservation
	out.SetAnnotations(annotations)
	return out
}

// Queued returns the copy with the queue of its original; nil when it has it.
func Queued(original, current *unstructured.Unstructured) *unstructured.Unstructured {
	return relabelled(original, current, queueLabel)
}

func relabelled(original, current *unstructured.Unstructured, label string) *unstructured.Unstructured {
	want := original.GetLabels()[label]
	if current.GetLabels()[label] == want {
		return nil
	}
	out := current.DeepCopy()
	labels := out.GetLabels()
	labels[label] = want
	out.SetLabels(labels)
	return out
}

// Flowed returns the copy with the edits that its original got since; nil when
// there are none. Each generation of the original is followed once, lest two
// clusters that fill in different defaults never agree.
func (k *Kind) Flowed(original, current *unstructured.Unstructured) *unstructured.Unstructured {
	generation := strconv.FormatInt(original.GetGeneration(), 10)
	if generation != "0" && current.GetAnnotations()[generationAnnotation] == generation {
		return nil
	}
	wanted := k.likeCopy(original, current)
	var out *unstructured.Unstructured
	for _, path := range k.Flow {
		want, found, _ := unstructured.NestedFieldCopy(wanted.Object, path...)
		is, has, _ := unstructured.NestedFieldNoCopy(current.Object, path...)
		if found == has && equality.Semantic.DeepEqual(want, is) {
			continue
		}
		if out == nil {
			out = current.DeepCopy()
		}
		if !found {
			unstructured.RemoveNestedField(out.Object, path...)
			continue
		}
		// The parents are there: the API server validated the object.
		_ = unstructured.SetNestedField(out.Object, want, path...)
	}
	if out != nil {
		annotations := out.GetAnnotations()
		annotations[generationAnnotation] = generation
		out.SetAnnotations(annotations)
	}
	return out
}

// likeCopy is the original with what its kind changes on a copy.
func (k *Kind) likeCopy(original, current *unstructured.Unstructured) *unstructured.Unstructured {
	if k.project == nil || k.keepsTemplate(original, current) {
		return original
	}
	out := original.DeepCopy()
	out.SetLabels(current.GetLabels())
	out.SetAnnotations(current.GetAnnotations())
	k.project(out)
	return out
}

// keepsTemplate: the pods of an adopted set were made without marks, and marks alone are no reason to restart them.
func (k *Kind) keepsTemplate(original, current *unstructured.Unstructured) bool {
	if !k.Pods || k.MarksPods(current) {
		return false
	}
	for _, path := range podTemplates {
		want, _, _ := unstructured.NestedMap(original.Object, path...)
		is, _, _ := unstructured.NestedMap(current.Object, path...)
		if !equality.Semantic.DeepEqual(want, is) {
			return false
		}
	}
	return true
}
