package app

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

var loadTime = metav1.NewTime(time.Now().Add(-time.Hour))

func loadedKinds() []client.Object {
	return []client.Object{&kueue.Workload{}, &kueue.AdmissionCheck{}, &kueue.MultiKueueConfig{}}
}

func discovered() metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "batch/v1",
		APIResources: []metav1.APIResource{{Name: "jobs", SingularName: "job", Kind: "Job", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}},
	}
}

func bookmark(plural string, r *http.Request) any {
	kind := map[string]string{
		"workloads": "Workload", "localqueues": "LocalQueue", "admissionchecks": "AdmissionCheck", "multikueueconfigs": "MultiKueueConfig", "jobs": "Job",
	}[plural]
	version := kueue.SchemeGroupVersion.String()
	if kind == "Job" {
		version = "batch/v1"
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		kind, version = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	return map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{
		"resourceVersion": "1000000", "annotations": map[string]any{"k8s.io/initial-events-end": "true"},
	}}
}

// objects tells all objects of one resource on the manager, or on a worker.
func (s *loadServer) objects(worker, plural string, tell func(any)) {
	switch plural {
	case "localqueues":
		q := &kueue.LocalQueue{TypeMeta: kueueType("LocalQueue"), ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "main", ResourceVersion: "1", UID: "q"}}
		q.Spec.ClusterQueue = "main"
		tell(q)
	case "admissionchecks":
		check := &kueue.AdmissionCheck{TypeMeta: kueueType("AdmissionCheck"), ObjectMeta: metav1.ObjectMeta{Name: "multikueue", ResourceVersion: "1", UID: "c"}}
		check.Spec.ControllerName = kueue.MultiKueueControllerName
		check.Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: kueue.SchemeGroupVersion.Group, Kind: "MultiKueueConfig", Name: "all"}
		tell(check)
	case "multikueueconfigs":
		all := &kueue.MultiKueueConfig{TypeMeta: kueueType("MultiKueueConfig"), ObjectMeta: metav1.ObjectMeta{Name: "all", ResourceVersion: "1", UID: "m"}}
		all.Spec.Clusters = allWorkers()
		tell(all)
	case "jobs":
		for i := 0; worker == "" && i < s.jobs; i++ {
			tell(waitingJob(i))
		}
	case "workloads":
		for i := range s.jobs {
			wl := waitingWorkload(i)
			if worker != "" {
				wl = waitingCopy(wl, i, worker)
			}
			tell(wl)
		}
	}
}

func allWorkers() []string {
	names := make([]string, *loadWorkers)
	for i := range names {
		names[i] = workerName(i)
	}
	return names
}

func kueueType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: kind}
}

func jobUID(i int) types.UID { return types.UID(fmt.Sprintf("6f0b8f0e-6d5f-4a53-9c3b-%012d", i)) }

// fields are managed fields as long as those of a job usually are.
func fields(manager string) []metav1.ManagedFieldsEntry {
	raw := `{"f:metadata":{"f:annotations":{".":{},"f:a":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{}}}}}`
	return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(raw)}}
}

// podTemplate is that of one of many runs that differ in an argument only.
func podTemplate(run int) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "train", "team": "a"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Volumes:       []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/team-a/train:2026-11-30", Command: []string{"python", "-m", "train"},
				Args: []string{"--epochs=20", "--lr=0.001", "--data=/data/2026-11", fmt.Sprintf("--seed=%d", run)},
				Env:  []corev1.EnvVar{{Name: "RANK", Value: "0"}, {Name: "WORLD_SIZE", Value: "1"}, {Name: "LOG_LEVEL", Value: "info"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Gi")},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
		},
	}
}

func waitingJob(i int) *batchv1.Job {
	name := fmt.Sprintf("train-%05d", i)
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: name, UID: jobUID(i), ResourceVersion: fmt.Sprint(1000 + i), Generation: 1, CreationTimestamp: loadTime,
			Labels:      map[string]string{"kueue.x-k8s.io/queue-name": "main", "team": "a"},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 1500)}, ManagedFields: fields("kubectl"),
		},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To(int32(2)), Completions: ptr.To(int32(2)), BackoffLimit: ptr.To(int32(3)), Suspend: ptr.To(true),
			ManagedBy: ptr.To(kueue.MultiKueueControllerName), Template: podTemplate(i),
		},
	}
}

func waitingWorkload(i int) *kueue.Workload {
	job := waitingJob(i)
	return &kueue.Workload{
		TypeMeta: kueueType("Workload"),
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: "job-" + job.Name + "-a1b2c", UID: "w" + job.UID, ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: loadTime, Generation: 1,
			Labels:     map[string]string{kinds.JobUIDLabel: string(job.UID)},
			Finalizers: []string{kueue.ResourceInUseFinalizerName}, ManagedFields: fields("kueue"),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: kueue.WorkloadSpec{
			QueueName: "main", Active: ptr.To(true), Priority: ptr.To(int32(0)),
			PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: podTemplate(i)}},
		},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{{
				Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "QuotaReserved", Message: "Quota reserved in ClusterQueue main", LastTransitionTime: loadTime,
			}},
			Admission: &kueue.Admission{ClusterQueue: "main", PodSetAssignments: []kueue.PodSetAssignment{{
				Name: "main", Count: ptr.To(int32(2)), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: "default", corev1.ResourceMemory: "default"},
				ResourceUsage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")},
			}}},
			NominatedClusterNames: allWorkers(),
			AdmissionChecks:       []kueue.AdmissionCheckState{{Name: "multikueue", State: kueue.CheckStatePending, LastTransitionTime: loadTime, Message: loadMessage()}},
		},
	}
}

// loadMessage is what the check says when nothing is left to say.
func loadMessage() string {
	asked := make([]string, *loadWorkers)
	for i := range asked {
		asked[i] = workerName(i) + " (waits for quota)"
	}
	return reason.Fit(reason.Offered(strings.Join(asked, "; ")))
}

func waitingCopy(wl *kueue.Workload, i int, worker string) *kueue.Workload {
	ref := kinds.Ref{Kind: "Job.batch", Namespace: wl.Namespace, Name: waitingJob(i).Name}
	c := kinds.ProjectWorkload(wl, ref, kinds.Marks{Origin: "me", Worker: worker, Reservation: plan.Reservation(wl)})
	c.UID, c.ResourceVersion, c.CreationTimestamp, c.Generation = types.UID(worker)+wl.UID, wl.ResourceVersion, loadTime, 1
	c.ManagedFields = fields("kueue")
	c.Status.Conditions = []metav1.Condition{{
		Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: "Pending", LastTransitionTime: loadTime,
		Message: "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 4 more needed",
	}}
	return c
}
