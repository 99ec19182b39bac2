package world

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

type condition = metav1.Condition

// Submit makes a Job on the manager, as kubectl apply and Ferry's webhook do.
func (w *World) Submit(name string, parallelism int64) error {
	job := newJob(name, parallelism)
	_ = unstructured.SetNestedField(job.Object, kueue.MultiKueueControllerName, "spec", "managedBy")
	return w.SubmitJob(job)
}

// SubmitUnrequested makes a Job that is left to Ferry and requests nothing.
func (w *World) SubmitUnrequested(name string) error {
	job := newJob(name, 1)
	_ = unstructured.SetNestedField(job.Object, kueue.MultiKueueControllerName, "spec", "managedBy")
	job.SetAnnotations(map[string]string{kueuemodel.UnrequestedAnnotation: "true"})
	return w.SubmitJob(job)
}

// SubmitJob makes this Job on the manager.
func (w *World) SubmitJob(job *unstructured.Unstructured) error {
	_, err := w.Manager.Create(job)
	if err != nil {
		return fmt.Errorf("submit %s: %w", job.GetName(), err)
	}
	return nil
}

// NewJob is a Job as a user writes it.
func NewJob(name string, parallelism int64) *unstructured.Unstructured {
	return newJob(name, parallelism)
}

func newJob(name string, parallelism int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"namespace": Namespace, "name": name, "labels": map[string]any{kueuemodel.QueueLabel: QueueName}},
		"spec": map[string]any{
			"suspend": true, "parallelism": parallelism, "completions": parallelism,
			"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never"}},
		},
	}}
}

// Delete deletes a job on the manager.
func (w *World) Delete(name string) { w.Manager.Remove(refKey(w.refOf(name))) }

// Foreign makes somebody else's job on a worker; by another manager when its origin is given.
func (w *World) Foreign(worker, name, origin string) error {
	job := newJob(name, 1)
	switch w.kindOf(name) {
	case cluster.Set:
		job = newSet(name, 1)
	case cluster.Pod:
		job = newPod(name)
	}
	job.SetLabels(nil)
	if origin != "" {
		job.SetLabels(map[string]string{kueue.MultiKueueOriginLabel: origin})
		job.SetAnnotations(map[string]string{kueue.MultiKueueOriginUIDAnnotation: "elsewhere", kinds.JobAnnotation: w.refOf(name).Kind + "/" + name})
	}
	_, err := w.workers[worker].Cluster.Create(job)
	if err != nil {
		return fmt.Errorf("make a foreign job: %w", err)
	}
	return nil
}

// RemoveForeign deletes what is not Ferry's from a worker.
func (w *World) RemoveForeign(worker, name string) {
	if job := w.JobOn(worker, name); job != nil && !ours(job) {
		w.workers[worker].Cluster.Remove(cluster.KeyOf(job))
	}
	for _, wl := range w.Workloads(name) {
		if c := w.workers[worker].Cluster.Workload(wl.Namespace, wl.Name); c != nil && !ours(c) {
			w.workers[worker].Cluster.Remove(cluster.KeyOf(c))
		}
	}
}

// ByMultiKueue makes everything of Ferry's on a worker look as if MultiKueue had made it, with this origin.
func (w *World) ByMultiKueue(worker, origin string) {
	c := w.workers[worker].Cluster
	held := c.List("Workload")
	for _, kind := range cluster.JobKinds {
		held = append(held, c.List(kind.Kind)...)
	}
	for _, obj := range held {
		if obj.GetLabels()[kueue.MultiKueueOriginLabel] == "" {
			continue
		}
		c.Edit(cluster.KeyOf(obj), func(obj client.Object) {
			labels, annotations := obj.GetLabels(), obj.GetAnnotations()
			labels[kueue.MultiKueueOriginLabel] = origin
			for _, mark := range []string{kinds.JobAnnotation, kinds.ReservationAnnotation, kinds.WorkerAnnotation, kinds.SpecHashAnnotation, kueue.MultiKueueOriginUIDAnnotation} {
				delete(annotations, mark)
			}
			obj.SetLabels(labels)
			obj.SetAnnotations(annotations)
		})
	}
}

// DeleteOnWorker lets somebody on the worker delete Ferry's copy, of the job or of its Workload.
func (w *World) DeleteOnWorker(worker, name, kind string) {
	c := w.workers[worker].Cluster
	whole, _, _ := strings.Cut(name, "/")
	if job := w.JobOn(worker, whole); kind == "Job" && job != nil && ours(job) {
		delete(w.book.results, origin(job))
		c.Remove(cluster.KeyOf(job))
	}
	if wl := w.Copy(worker, name); kind == "Workload" && wl != nil {
		if job := w.JobOn(worker, name); job != nil {
			delete(w.book.results, origin(job))
		}
		c.Remove(cluster.KeyOf(wl))
	}
}

// OutOfSync lets Kueue on a worker end the copy as unlike its job, which must
// not count as a result; false when there is nothing to end.
func (w *World) OutOfSync(worker, name string) bool {
	wl, job := w.Copy(worker, name), w.JobOn(worker, name)
	if wl == nil || finished(wl) || endedAlready(job) {
		return false
	}
	w.workers[worker].Kueue.FinishOutOfSync(wl)
	return true
}

// EndOn lets Kueue on a worker end the job's copy for a reason that is no result.
func (w *World) EndOn(worker, name, why string) bool {
	wl := w.Copy(worker, name)
	if wl == nil || finished(wl) {
		return false
	}
	w.workers[worker].Cluster.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
		meta.SetStatusCondition(&wl.Status.Conditions, condition{
			Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: why, Message: "it cannot be", LastTransitionTime: w.Manager.Now(),
		})
	})
	return true
}

// Explain lets Kueue on a worker say why the job's copy has no quota there.
func (w *World) Explain(worker, name, why string) {
	for _, wl := range w.Copies(worker, name) {
		w.workers[worker].Cluster.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
			meta.SetStatusCondition(&wl.Status.Conditions, condition{
				Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse, Reason: kueue.WorkloadInadmissible, Message: why, LastTransitionTime: w.Manager.Now(),
			})
		})
	}
}

// SetCheck sets another check of the job's Workload.
func (w *World) SetCheck(name, check string, state kueue.CheckState) {
	for _, wl := range w.Workloads(name) {
		w.setCheck(wl, check, state)
	}
}

func (w *World) setCheck(wl *kueue.Workload, check string, state kueue.CheckState) {
	w.Manager.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
		for i := range wl.Status.AdmissionChecks {
			if c := &wl.Status.AdmissionChecks[i]; string(c.Name) == check {
				c.State, c.LastTransitionTime = state, w.Manager.Now()
			}
		}
	})
}

// SetPriority changes the priority of the job's Workload on the manager.
func (w *World) SetPriority(name string, priority int32) {
	for _, wl := range w.Workloads(name) {
		w.Manager.Edit(cluster.KeyOf(wl), func(o client.Object) { o.(*kueue.Workload).Spec.Priority = &priority })
	}
}

// SetWorkers changes the MultiKueueConfig.
func (w *World) SetWorkers(names []string) {
	w.Manager.Edit(cluster.Key{Kind: "MultiKueueConfig", Name: Config}, func(o client.Object) {
		o.(*kueue.MultiKueueConfig).Spec.Clusters = slices.Clone(names)
	})
}

// Nominate is what another dispatcher does: it names workers, as Kueue asks it to, as Kueue.
func (w *World) Nominate(name string, workers []string) {
	for _, wl := range w.Workloads(name) {
		w.nominate(wl, workers)
	}
}

func (w *World) nominate(wl *kueue.Workload, workers []string) {
	w.Manager.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) { wl.Status.NominatedClusterNames = workers })
}

// externalSteps are the nominations that an external dispatcher could make.
func (w *World) externalSteps() []step {
	if w.policy.Dispatcher != ExternalDispatcher {
		return nil
	}
	var steps []step
	for _, job := range w.Manager.Jobs() {
		for _, wl := range w.Kueue.WorkloadsOf(job) {
			if waits(wl) {
				steps = append(steps, step{"external dispatcher", "nominate for " + wl.Name, func() { w.nominate(wl, w.configured) }, true})
			}
		}
	}
	return steps
}

// ExternalDispatcher is the name of a dispatcher that is not Ferry's.
const ExternalDispatcher = "example.com/dispatcher"

func waits(wl *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadQuotaReserved) &&
		!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted) &&
		!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) &&
		wl.Status.ClusterName == nil && len(wl.Status.NominatedClusterNames) == 0
}

// Resize changes the pod count of the job's Workload, as Kueue does when the user changed a suspended job.
func (w *World) Resize(name string, count int32) {
	if wl := w.Workload(name); wl != nil {
		w.Manager.Edit(cluster.KeyOf(wl), func(o client.Object) { o.(*kueue.Workload).Spec.PodSets[0].Count = count })
	}
}
