package customjobs

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Wire names of Kueue.
const (
	queueLabel    = "kueue.x-k8s.io/queue-name"
	prebuiltLabel = "kueue.x-k8s.io/prebuilt-workload-name"
)

// workload is the Workload that the job names, adopted, or one made for it.
func (r *reconciler) workload(ctx context.Context, job *unstructured.Unstructured) (*kueue.Workload, error) {
	prebuilt := cmp.Or(job.GetLabels()[prebuiltLabel], job.GetAnnotations()[prebuiltLabel])
	wl := &kueue.Workload{}
	key := client.ObjectKey{Namespace: job.GetNamespace(), Name: cmp.Or(prebuilt, workloadName(job))}
	err := r.Get(ctx, key, wl)
	switch {
	case apierrors.IsNotFound(err) && prebuilt != "":
		return nil, errNoWorkload
	case apierrors.IsNotFound(err):
		wl = r.newWorkload(job, key.Name)
		return wl, r.Create(ctx, wl)
	case err != nil:
		return nil, err
	case metav1.GetControllerOf(wl) == nil:
		before := wl.DeepCopy()
		wl.OwnerReferences = append(wl.OwnerReferences, r.owner(job))
		return wl, r.Patch(ctx, wl, client.MergeFrom(before))
	}
	return wl, nil
}

func workloadName(job *unstructured.Unstructured) string {
	return strings.ToLower(job.GetKind()) + "-" + job.GetName() + "-" + string(job.GetUID())[:5]
}

func (r *reconciler) owner(job *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(job, r.kind.GVK)
}

func (r *reconciler) newWorkload(job *unstructured.Unstructured, name string) *kueue.Workload {
	cpu, err := resource.ParseQuantity(cmp.Or(job.GetAnnotations()[CPU], "1"))
	if err != nil {
		cpu = resource.MustParse("1")
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}},
	}}, RestartPolicy: corev1.RestartPolicyNever}
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: job.GetNamespace(), Name: name, OwnerReferences: []metav1.OwnerReference{r.owner(job)}}}
	wl.Spec.QueueName = kueue.LocalQueueName(job.GetLabels()[queueLabel])
	wl.Spec.PodSets = []kueue.PodSet{{Name: kueue.DefaultPodSetName, Count: 1, Template: corev1.PodTemplateSpec{Spec: pod}}}
	return wl
}

func (r *reconciler) finish(ctx context.Context, wl *kueue.Workload, p Progress) error {
	reason, message := kueue.WorkloadFinishedReasonSucceeded, "The job succeeded"
	if p.Failed {
		reason, message = kueue.WorkloadFinishedReasonFailed, "The job failed"
	}
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
		Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: wl.Generation,
	})
	return r.Status().Update(ctx, wl)
}

// release gives the quota of an evicted Workload back, once nothing of the job runs, so that it is queued again.
func (r *reconciler) release(ctx context.Context, wl *kueue.Workload) error {
	if !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) {
		return nil
	}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		if meta.IsStatusConditionTrue(wl.Status.Conditions, condition) {
			meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionFalse, Reason: "Pending", Message: "The job was evicted and has stopped", ObservedGeneration: wl.Generation,
			})
		}
	}
	wl.Status.Admission, wl.Status.ClusterName = nil, nil
	return r.Status().Update(ctx, wl)
}
