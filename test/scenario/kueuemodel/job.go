package kueuemodel

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
)

type clientObject = client.Object

// reconcileJob is the next thing that Kueue's job reconciler does for a job.
func (m *Model) reconcileJob(job *unstructured.Unstructured) Step {
	if job.GetLabels()[QueueLabel] == "" || job.GetDeletionTimestamp() != nil {
		return Step{}
	}
	wl := m.WorkloadOf(job)
	ended, success := Ended(job)
	switch {
	case wl == nil:
		return m.withoutWorkload(job, ended)
	case prebuilt(job) != "" && !metav1.IsControlledBy(wl, job):
		return Step{Name: "adopt " + wl.Name, Do: func() { m.adopt(wl, job) }}
	case outOfSync(wl):
		return m.stop(job)
	case is(wl, kueue.WorkloadFinished):
		return m.removeFinalizer(wl)
	case !wl.DeletionTimestamp.IsZero():
		if s := m.stop(job); s.Do != nil {
			return s
		}
		return m.removeFinalizer(wl)
	case ended:
		return m.finish(wl, job, success)
	case is(wl, kueue.WorkloadEvicted):
		return m.stopEvicted(wl, job)
	case Suspended(job) && is(wl, kueue.WorkloadAdmitted):
		return Step{Name: "start " + job.GetName(), Do: func() { m.setSuspend(job, false) }}
	case !Suspended(job) && !is(wl, kueue.WorkloadAdmitted):
		return m.stop(job)
	}
	return Step{}
}

func (m *Model) withoutWorkload(job *unstructured.Unstructured, ended bool) Step {
	switch {
	case prebuilt(job) != "":
		return m.stop(job)
	case ended || count(job, "active") > 0:
		return Step{}
	default:
		return Step{Name: "make the Workload of " + job.GetName(), Do: func() { m.makeWorkload(job) }}
	}
}

func (m *Model) makeWorkload(job *unstructured.Unstructured) {
	parallelism, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
	// Kueue's suffix is a hash of the UID.
	wl := newWorkload(job, strings.ToLower(job.GetKind())+"-"+job.GetName()+"-"+strings.ReplaceAll(string(job.GetUID()), "manager-", ""))
	wl.OwnerReferences = []metav1.OwnerReference{controllerOf(job)}
	wl.Spec.PodSets[0].Count = max(int32(parallelism), 1)
	if IsUnrequested(job) {
		wl.Annotations = map[string]string{UnrequestedAnnotation: "true"}
	}
	if _, err := m.Cluster.Create(wl); err != nil {
		m.Cluster.Violation("Kueue cannot make the Workload of %s: %v", job.GetName(), err)
	}
}

// newWorkload is what Kueue gives every Workload.
func newWorkload(job *unstructured.Unstructured, name string) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.GetNamespace(), Name: name,
		Finalizers: []string{kueue.ResourceInUseFinalizerName},
		Labels:     map[string]string{kinds.JobUIDLabel: string(job.GetUID())},
	}}
	wl.Spec.QueueName = kueue.LocalQueueName(job.GetLabels()[QueueLabel])
	active, priority := true, int32(0)
	wl.Spec.Active, wl.Spec.Priority = &active, &priority
	wl.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{}}}
	return wl
}

func controllerOf(job *unstructured.Unstructured) metav1.OwnerReference {
	owner, yes := ownerOf(job), true
	owner.Controller = &yes
	return owner
}

func (m *Model) adopt(wl *kueue.Workload, job *unstructured.Unstructured) {
	m.Cluster.Edit(cluster.KeyOf(wl), func(o client.Object) {
		o.SetOwnerReferences([]metav1.OwnerReference{controllerOf(job)})
	})
}

func (m *Model) removeFinalizer(wl *kueue.Workload) Step {
	if !slices.Contains(wl.Finalizers, kueue.ResourceInUseFinalizerName) {
		return Step{}
	}
	return Step{Name: "release the finalizer of " + wl.Name, Do: func() {
		m.Cluster.Edit(cluster.KeyOf(wl), func(o client.Object) { o.SetFinalizers(nil) })
	}}
}

func (m *Model) finish(wl *kueue.Workload, job *unstructured.Unstructured, success bool) Step {
	reason := kueue.WorkloadFinishedReasonSucceeded
	if !success {
		reason = kueue.WorkloadFinishedReasonFailed
	}
	return m.kueue("finish", wl, func(wl *kueue.Workload) {
		m.set(wl, kueue.WorkloadFinished, true, reason, "Job "+job.GetName()+" ended")
	})
}

func (m *Model) stopEvicted(wl *kueue.Workload, job *unstructured.Unstructured) Step {
	if s := m.stop(job); s.Do != nil {
		return s
	}
	if is(wl, kueue.WorkloadQuotaReserved) && count(job, "active") == 0 {
		return m.kueue("release the quota of", wl, m.release)
	}
	return Step{}
}

// stop suspends a job, and then takes back its start time, in two writes.
func (m *Model) stop(job *unstructured.Unstructured) Step {
	if ended, _ := Ended(job); ended || decided(job) {
		// Kubernetes refuses to end a job without its start time.
		return Step{}
	}
	if !Suspended(job) {
		return Step{Name: "suspend " + job.GetName(), Do: func() { m.setSuspend(job, true) }}
	}
	if _, started, _ := unstructured.NestedString(job.Object, "status", "startTime"); started {
		return m.status("reset the start of", job, func(status map[string]any) { delete(status, "startTime") })
	}
	return Step{}
}

func (m *Model) setSuspend(job *unstructured.Unstructured, suspend bool) {
	m.Cluster.Edit(cluster.KeyOf(job), func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, suspend, "spec", "suspend")
	})
}

// finalize lets go of Workloads whose job is gone already.
func (m *Model) finalize(wl *kueue.Workload) Step {
	if wl.DeletionTimestamp.IsZero() || m.jobOf(wl) != nil {
		return Step{}
	}
	return m.removeFinalizer(wl)
}
