package world

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/cluster"
)

// SubmitOther makes the Workload of a job whose kind Ferry does not know.
func (w *World) SubmitOther(kind, name string) error {
	yes := true
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: kind, Name: name, UID: "other", Controller: &yes},
	}}}
	wl.Spec.QueueName, wl.Spec.Active = QueueName, &yes
	if _, err := w.Manager.Create(wl); err != nil {
		return fmt.Errorf("submit %s %s: %w", kind, name, err)
	}
	return nil
}

// AnyWorkload is the manager's Workload of a job of this name, or of this name itself.
func (w *World) AnyWorkload(name string) *kueue.Workload {
	if wl := w.Workload(name); wl != nil {
		return wl
	}
	return w.Manager.Workload(Namespace, name)
}

// DropCheck deletes an AdmissionCheck.
func (w *World) DropCheck(name string) {
	w.Manager.Remove(cluster.Key{Kind: "AdmissionCheck", Name: name})
}

// MakeFerryCheck makes Ferry's AdmissionCheck anew.
func (w *World) MakeFerryCheck() { w.makeCheck(Check, kueue.MultiKueueControllerName, Config) }

// Repoint makes another MultiKueueConfig and lets Ferry's AdmissionCheck lead to it.
func (w *World) Repoint(config string, workers []string) {
	_, _ = w.Manager.Create(&kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: config}, Spec: kueue.MultiKueueConfigSpec{Clusters: workers}})
	w.Manager.Edit(cluster.Key{Kind: "AdmissionCheck", Name: Check}, func(o client.Object) { o.(*kueue.AdmissionCheck).Spec.Parameters.Name = config })
	w.Tracef("admin: the check leads to %s, with %v", config, workers)
}

// DropQueue deletes a worker's LocalQueue.
func (w *World) DropQueue(worker string) {
	w.workers[worker].Cluster.Remove(cluster.Key{Kind: "LocalQueue", Namespace: Namespace, Name: QueueName})
}

// MakeQueue makes a worker's LocalQueue.
func (w *World) MakeQueue(worker string) {
	_, _ = w.workers[worker].Cluster.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: QueueName}})
}

// DeleteCluster deletes the MultiKueueCluster: Ferry holds it until it has withdrawn from the worker.
func (w *World) DeleteCluster(name string) {
	w.workers[name].leaving = true
	w.Tracef("admin: MultiKueueCluster %s is to go", name)
	if w.ferry != nil {
		w.ferry.everyJob()
	}
}

// isWithdrawn tells whether Ferry may let go of a MultiKueueCluster that is to go.
func (w *World) isWithdrawn(worker *Worker) bool {
	if !worker.leaving || worker.link == nil {
		return false
	}
	for _, kind := range append([]schema.GroupVersionKind{kueue.SchemeGroupVersion.WithKind("Workload")}, cluster.JobKinds...) {
		if slices.ContainsFunc(worker.Cluster.List(kind.Kind), func(obj client.Object) bool { return ours(obj) }) {
			return false
		}
	}
	for _, obj := range w.Manager.List("Workload") {
		wl := obj.(*kueue.Workload)
		if (wl.Status.ClusterName != nil && *wl.Status.ClusterName == worker.Name) || slices.Contains(wl.Status.NominatedClusterNames, worker.Name) {
			return false
		}
	}
	return true
}

func (w *World) letGo(name string) {
	w.ferry.observer.Memory.Vacated(name)
	w.RemoveCluster(name)
}

// RemoveCluster deletes the MultiKueueCluster: Ferry forgets the worker.
func (w *World) RemoveCluster(name string) {
	w.configured = slices.DeleteFunc(w.configured, func(n string) bool { return n == name })
	w.disconnect(w.workers[name])
	w.Tracef("admin: MultiKueueCluster %s deleted", name)
	if w.ferry != nil {
		w.ferry.workerChanged(name)
	}
}

// SettleKueue lets Kueue and the Job controllers do what follows by itself.
func (w *World) SettleKueue() {
	for {
		found := false
		for _, s := range w.kueueSteps() {
			if !s.choice {
				w.Tracef("%s: %s", s.who, s.what)
				s.do()
				found = true
				break
			}
		}
		if !found {
			return
		}
	}
}

// Rule names the rule that Ferry would decide by now; a dash while it is down.
func (w *World) Rule(name string) string {
	if w.ferry == nil {
		return "-"
	}
	ref := w.refOf(name)
	if wl := w.AnyWorkload(name); wl != nil {
		ref = workloadRef(wl)
	}
	s, err := w.ferry.observer.Snapshot(context.Background(), ref)
	if err != nil {
		return err.Error()
	}
	return plan.Decide(s).Rule
}
