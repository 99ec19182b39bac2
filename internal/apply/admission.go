package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// kueueAdmission is the field manager under which Kueue writes a Workload's admission.
const kueueAdmission = "kueue-admission"

// The conditions that Kueue writes as kueueAdmission. A server-side apply drops
// what its manager owned and leaves out, so each of them has to be repeated.
var admissionConditions = []string{
	kueue.WorkloadQuotaReserved, kueue.WorkloadBlockedOnPreemptionGates, kueue.WorkloadEvicted, kueue.WorkloadAdmitted,
	kueue.WorkloadPreempted, kueue.WorkloadRequeued, kueue.WorkloadDeactivationTarget, kueue.WorkloadFinished, kueue.WorkloadPodsReady,
}

// admissionStatus is all of wl that belongs to kueueAdmission: the status but
// for the fields that Kueue's job controllers write.
func admissionStatus(wl *kueue.Workload) *kueue.Workload {
	out := &kueue.Workload{
		TypeMeta: metav1.TypeMeta{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "Workload"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wl.Namespace, Name: wl.Name, UID: wl.UID, ResourceVersion: wl.ResourceVersion,
		},
		Status: *wl.Status.DeepCopy(),
	}
	out.Status.ReclaimablePods = nil
	out.Status.Conditions = slices.DeleteFunc(out.Status.Conditions, func(c metav1.Condition) bool {
		return !slices.Contains(admissionConditions, c.Type)
	})
	if out.Status.Admission != nil {
		// The assignment supersedes the requests, as in Kueue.
		out.Status.ResourceRequests = nil
	}
	if r := out.Status.RequeueState; r != nil && r.Count == nil && r.RequeueAt == nil {
		out.Status.RequeueState = nil
	}
	return out
}

func setCondition(wl *kueue.Workload, c metav1.Condition) {
	c.Message = reason.Fit(c.Message)
	meta.SetStatusCondition(&wl.Status.Conditions, c)
}
