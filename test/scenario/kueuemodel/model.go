// Package kueuemodel plays Kueue and the Job controller on one cluster, one small write at a time.
package kueuemodel

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Step is one thing that could happen next.
type Step struct {
	Name string
	// Choice is set for what somebody decides (who gets quota, when a pod ends),
	// as against what follows by itself.
	Choice bool
	Do     func()
}

// Model is Kueue's and the Job controller's side of a cluster. It keeps nothing but
// settings: what it does next depends on the objects alone.
type Model struct {
	Cluster *cluster.Cluster
	// Manager is set on the manager, where jobs with managedBy are left to Ferry.
	Manager bool
	// Ungated is set on a manager where Ferry's webhook does not see new pods.
	Ungated bool
	// Topology is set on a manager whose flavor has a topology: a Workload is admitted there only once somebody says
	// that its nodes were found.
	Topology bool
	// Checks are the admission checks of the manager's only ClusterQueue.
	Checks []kueue.AdmissionCheckReference
	// Capacity is how many Workloads may hold quota at once.
	Capacity int

	// steps are those of the cluster as of version and for the capacity, which they depend on alone.
	steps   []Step
	version int64
	capped  int
}

// Steps lists everything that could happen next, in a fixed order.
func (m *Model) Steps() []Step {
	if v := m.Cluster.Version(); v != m.version || m.Capacity != m.capped || m.steps == nil {
		m.steps, m.version, m.capped = m.list(), v, m.Capacity
	}
	return m.steps
}

func (m *Model) list() []Step {
	steps := []Step{}
	add := func(s Step) {
		if s.Do != nil {
			steps = append(steps, s)
		}
	}
	if m.Cluster.Garbage() {
		add(Step{Name: "garbage collection", Do: m.Cluster.Collect})
	}
	for _, obj := range m.Cluster.List(cluster.Job.Kind) {
		job := obj.(*unstructured.Unstructured)
		add(m.reconcileJob(job))
		if m.runsJobs(job) {
			for _, s := range m.jobController(job) {
				add(s)
			}
		}
	}
	for _, obj := range m.Cluster.List(cluster.Set.Kind) {
		for _, s := range m.reconcileSet(obj.(*unstructured.Unstructured)) {
			add(s)
		}
	}
	for _, obj := range m.Cluster.List(cluster.Pod.Kind) {
		if !cluster.IsPart(obj) {
			for _, s := range m.reconcileSinglePod(obj.(*unstructured.Unstructured)) {
				add(s)
			}
		}
	}
	for _, obj := range m.Cluster.List("Workload") {
		for _, s := range m.reconcileWorkload(obj.(*kueue.Workload)) {
			add(s)
		}
	}
	return steps
}

// runsJobs: the Job controller leaves jobs with managedBy alone.
func (m *Model) runsJobs(job *unstructured.Unstructured) bool {
	by, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
	return by == ""
}

// WorkloadOf is the Workload that belongs to a job; nil when there is none.
func (m *Model) WorkloadOf(job *unstructured.Unstructured) *kueue.Workload {
	if name := prebuilt(job); name != "" {
		wl := m.Cluster.Workload(job.GetNamespace(), name)
		if wl == nil {
			return nil
		}
		if owner := metav1.GetControllerOfNoCopy(wl); owner != nil && owner.UID != job.GetUID() {
			return nil
		}
		return wl
	}
	for _, obj := range m.Cluster.List("Workload") {
		if metav1.IsControlledBy(obj, job) {
			return obj.(*kueue.Workload)
		}
	}
	return nil
}

// WorkloadsOf are all Workloads that belong to a job, those of a set in the order of its replicas.
func (m *Model) WorkloadsOf(job *unstructured.Unstructured) []*kueue.Workload {
	if job.GetKind() != cluster.Set.Kind {
		if wl := m.WorkloadOf(job); wl != nil {
			return []*kueue.Workload{wl}
		}
		return nil
	}
	var wls []*kueue.Workload
	for _, obj := range m.Cluster.List("Workload") {
		if owns(job, obj) {
			wls = append(wls, obj.(*kueue.Workload))
		}
	}
	return wls
}

func prebuilt(job *unstructured.Unstructured) string {
	if name := job.GetLabels()[kinds.PrebuiltWorkload]; name != "" {
		return name
	}
	return job.GetAnnotations()[kinds.PrebuiltWorkload]
}

func (m *Model) jobOf(wl *kueue.Workload) *unstructured.Unstructured {
	for _, job := range m.Cluster.Jobs() {
		if owns(job, wl) {
			return job
		}
	}
	return nil
}

// kueue is a step that writes a Workload's admission status.
func (m *Model) kueue(name string, wl *kueue.Workload, change func(*kueue.Workload)) Step {
	key := cluster.KeyOf(wl)
	return Step{Name: name + " " + wl.Name, Do: func() { m.Cluster.Kueue(key, change) }}
}

func (m *Model) choice(s Step) Step {
	s.Choice = true
	return s
}

func (m *Model) set(wl *kueue.Workload, condition string, status bool, reason, message string) {
	value := metav1.ConditionFalse
	if status {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{
		Type: condition, Status: value, Reason: reason, Message: message,
		LastTransitionTime: m.Cluster.Now(), ObservedGeneration: wl.Generation,
	})
}

func is(wl *kueue.Workload, condition string) bool {
	return wl != nil && meta.IsStatusConditionTrue(wl.Status.Conditions, condition)
}

// Reserved counts the Workloads that hold quota.
func (m *Model) Reserved() int {
	n := 0
	for _, obj := range m.Cluster.List("Workload") {
		wl := obj.(*kueue.Workload)
		if is(wl, kueue.WorkloadQuotaReserved) && !is(wl, kueue.WorkloadFinished) {
			n++
		}
	}
	return n
}

func anyCheck(wl *kueue.Workload, state kueue.CheckState) bool {
	return slices.ContainsFunc(wl.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool { return c.State == state })
}
