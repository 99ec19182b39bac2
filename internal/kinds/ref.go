package kinds

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Wire names of Kueue that its API packages do not export.
const (
	PrebuiltWorkload   = "kueue.x-k8s.io/prebuilt-workload-name"
	queueLabel         = "kueue.x-k8s.io/queue-name"
	JobUIDLabel        = "kueue.x-k8s.io/job-uid"
	jobOwnerGVK        = "kueue.x-k8s.io/job-owner-gvk"
	jobOwnerName       = "kueue.x-k8s.io/job-owner-name"
	isGroupWorkload    = "kueue.x-k8s.io/is-group-workload"
	kubectlLastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// Ferry's own annotations on the objects that it makes on workers.
const (
	ferryPrefix = "ferry.dev/"
	// JobAnnotation names the job on the manager, as Ref.String without the namespace.
	JobAnnotation = ferryPrefix + "job"
	// ReservationAnnotation ties a copy to one quota reservation on the manager.
	ReservationAnnotation = ferryPrefix + "reservation"
	// WorkerAnnotation names the MultiKueueCluster that a copy was made for: two
	// of them may lead to one cluster.
	WorkerAnnotation = ferryPrefix + "worker"
	// SpecHashAnnotation is the hash of the manager's Workload spec that a copy was made from.
	SpecHashAnnotation = ferryPrefix + "spec-hash"
	// templateAnnotation is the hash of the manager's pod template that a worker's pod was made from.
	templateAnnotation = ferryPrefix + "template"
	// generationAnnotation is the generation of the manager's job whose edits a copy has.
	generationAnnotation = ferryPrefix + "generation"
)

// Ref names a job on the manager; its copy on a worker has the same namespace and name.
type Ref struct {
	// Kind is Kind.Name, as in "Job.batch".
	Kind      string
	Namespace string
	Name      string
}

func (r Ref) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Key is the job's namespace and name.
func (r Ref) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// RefOf returns the job on the manager that an object there is, or is a part of.
func RefOf(job *unstructured.Unstructured) Ref {
	if job.GroupVersionKind() == pod.GVK {
		return podRef(job)
	}
	return Ref{Kind: job.GroupVersionKind().GroupKind().String(), Namespace: job.GetNamespace(), Name: job.GetName()}
}

// OwnedBy tells whether this very object, not one of the same name, is an owner of the Workload.
func OwnedBy(wl *kueue.Workload, job *unstructured.Unstructured) bool {
	return slices.ContainsFunc(wl.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == job.GetUID() })
}

// Owner returns the job that a Workload on the manager belongs to: the one its
// annotations name (Workloads with several owners), else its controller, else
// its first owner. A Workload that nobody owns is a job of its own kind.
func Owner(wl *kueue.Workload) (Ref, schema.GroupVersionKind) {
	if gvk, ok := parseGVK(wl.Annotations[jobOwnerGVK]); ok && wl.Annotations[jobOwnerName] != "" {
		return ref(wl, gvk, wl.Annotations[jobOwnerName]), gvk
	}
	if wl.Annotations[isGroupWorkload] == "true" {
		return ref(wl, podGroup.GVK, wl.Name).of(podGroup.name), podGroup.GVK
	}
	owner := metav1.GetControllerOfNoCopy(wl)
	if owner == nil && len(wl.OwnerReferences) > 0 {
		owner = &wl.OwnerReferences[0]
	}
	if owner == nil {
		gvk := kueue.SchemeGroupVersion.WithKind("Workload")
		return ref(wl, gvk, wl.Name), gvk
	}
	gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	return ref(wl, gvk, owner.Name), gvk
}

func ref(wl *kueue.Workload, gvk schema.GroupVersionKind, name string) Ref {
	return Ref{Kind: gvk.GroupKind().String(), Namespace: wl.Namespace, Name: name}
}

func (r Ref) of(kind string) Ref {
	r.Kind = kind
	return r
}

// parseGVK reads the form that schema.GroupVersionKind prints: "group/version, Kind=Kind".
func parseGVK(s string) (schema.GroupVersionKind, bool) {
	gv, kind, ok := strings.Cut(s, ", Kind=")
	if !ok {
		return schema.GroupVersionKind{}, false
	}
	return schema.FromAPIVersionAndKind(gv, kind), true
}

// CopyOf returns the job on the manager that an object on a worker is, or
// belongs to, a copy of; false for objects that do not carry Ferry's marks.
func CopyOf(obj metav1.Object) (Ref, bool) {
	annotations := obj.GetAnnotations()
	if !isOurs(obj, annotations) {
		return Ref{}, false
	}
	kind, name, ok := strings.Cut(annotations[JobAnnotation], "/")
	if !ok {
		return Ref{}, false
	}
	return Ref{Kind: kind, Namespace: obj.GetNamespace(), Name: name}, true
}

// IsCopyOf tells whether an object on a worker is the copy of this very job. The
// marks alone do not tell: operators hand a job's labels and annotations on to
// what they make of it, such as the RayCluster of a RayJob.
func IsCopyOf(obj *unstructured.Unstructured, job Ref) bool {
	ref, ours := CopyOf(obj)
	return ours && ref == job && RefOf(obj) == job
}

// Ours tells whether an object on a worker carries all marks of a copy made by
// a Ferry. That its origin label is this Ferry's is ensured by the label
// selector of the caches.
func Ours(obj metav1.Object) bool { return isOurs(obj, obj.GetAnnotations()) }

// isOurs takes the annotations, which an unstructured object makes anew each time.
func isOurs(obj metav1.Object, annotations map[string]string) bool {
	return annotations[JobAnnotation] != "" && annotations[kueue.MultiKueueOriginUIDAnnotation] != "" &&
		obj.GetLabels()[kueue.MultiKueueOriginLabel] != ""
}
