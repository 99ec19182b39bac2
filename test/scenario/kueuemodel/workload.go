package kueuemodel

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/scenario/cluster"
)

// Queue is the ClusterQueue of every cluster.
const Queue = "cq"

// reconcileWorkload is Kueue's work on a Workload by itself: quota, checks, eviction.
func (m *Model) reconcileWorkload(wl *kueue.Workload) []Step {
	active := wl.Spec.Active == nil || *wl.Spec.Active
	reserved, evicted := is(wl, kueue.WorkloadQuotaReserved), is(wl, kueue.WorkloadEvicted)
	switch {
	case !wl.DeletionTimestamp.IsZero():
		return []Step{m.finalize(wl)}
	case is(wl, kueue.WorkloadFinished):
		return nil
	case active && is(wl, kueue.WorkloadDeactivationTarget):
		return []Step{{Name: "deactivate rejected " + wl.Name, Do: func() { m.SetActive(wl, false) }}}
	case !active && !evicted && reserved:
		return []Step{m.kueue("evict the deactivated", wl, m.evicts(kueue.WorkloadDeactivated, "The workload is deactivated"))}
	case reserved && IsUnrequested(wl):
		return m.withoutFlavor(wl)
	case m.lacksChecks(wl):
		return []Step{m.kueue("add the checks to", wl, m.addChecks)}
	case active && !reserved:
		if m.Reserved() < m.Capacity {
			return []Step{m.choice(m.kueue("reserve quota for", wl, m.reserve))}
		}
		return nil
	case reserved && !evicted:
		return m.admission(wl)
	}
	return nil
}

func (m *Model) admission(wl *kueue.Workload) []Step {
	switch {
	case anyCheck(wl, kueue.CheckStateRejected):
		return []Step{m.kueue("mark as rejected", wl, func(wl *kueue.Workload) {
			m.set(wl, kueue.WorkloadDeactivationTarget, true, kueue.WorkloadEvictedByAdmissionCheck, "rejected")
		})}
	case anyCheck(wl, kueue.CheckStateRetry):
		return []Step{m.kueue("evict for a check", wl, m.evicts(kueue.WorkloadEvictedByAdmissionCheck, "a check asked to retry"))}
	case !is(wl, kueue.WorkloadAdmitted) && !anyCheck(wl, kueue.CheckStatePending) && !waitsForTopology(wl):
		admit := m.kueue("admit", wl, func(wl *kueue.Workload) {
			m.set(wl, kueue.WorkloadAdmitted, true, "Admitted", "The workload is admitted")
		})
		admit.Choice = !m.Manager
		return []Step{admit}
	}
	return nil
}

// UnrequestedAnnotation is on jobs that request nothing, and on their Workloads.
const UnrequestedAnnotation = "scenario.ferry.dev/requests-nothing"

// IsUnrequested tells whether an object is a job that requests nothing, or its Workload.
func IsUnrequested(obj metav1.Object) bool { return obj.GetAnnotations()[UnrequestedAnnotation] != "" }

// withoutFlavor: checks come with flavors, of which a Workload that requests nothing gets none. Kueue drops them, and admits.
func (m *Model) withoutFlavor(wl *kueue.Workload) []Step {
	if len(wl.Status.AdmissionChecks) > 0 {
		return []Step{m.kueue("drop the checks of", wl, func(wl *kueue.Workload) { wl.Status.AdmissionChecks = nil })}
	}
	return m.admission(wl)
}

func (m *Model) lacksChecks(wl *kueue.Workload) bool {
	return slices.ContainsFunc(m.Checks, func(name kueue.AdmissionCheckReference) bool { return !hasCheck(wl, name) })
}

func hasCheck(wl *kueue.Workload, name kueue.AdmissionCheckReference) bool {
	return slices.ContainsFunc(wl.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool { return c.Name == name })
}

func (m *Model) addChecks(wl *kueue.Workload) {
	for _, name := range m.Checks {
		if !hasCheck(wl, name) {
			wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, kueue.AdmissionCheckState{
				Name: name, State: kueue.CheckStatePending, LastTransitionTime: m.Cluster.Now(),
			})
		}
	}
}

func (m *Model) reserve(wl *kueue.Workload) {
	wl.Status.Admission = &kueue.Admission{ClusterQueue: Queue}
	if IsUnrequested(wl) {
		wl.Status.Admission.PodSetAssignments = []kueue.PodSetAssignment{{Name: wl.Spec.PodSets[0].Name}}
	}
	if m.Topology && !IsUnrequested(wl) {
		wl.Status.Admission.PodSetAssignments = []kueue.PodSetAssignment{{
			Name: wl.Spec.PodSets[0].Name, Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{corev1.ResourceCPU: "racks"},
			DelayedTopologyRequest: ptr.To(kueue.DelayedTopologyRequestStatePending),
		}}
	}
	m.set(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", "Quota reserved in ClusterQueue "+Queue)
	for _, condition := range []string{kueue.WorkloadEvicted, kueue.WorkloadPreempted} {
		if is(wl, condition) {
			m.set(wl, condition, false, "QuotaReserved", "Previously: gone")
		}
	}
}

func waitsForTopology(wl *kueue.Workload) bool {
	return wl.Status.Admission != nil && slices.ContainsFunc(wl.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		return ptr.Deref(a.DelayedTopologyRequest, "") == kueue.DelayedTopologyRequestStatePending
	})
}

// evicts returns the change that Kueue's eviction makes, all in one write.
func (m *Model) evicts(reason, message string) func(*kueue.Workload) {
	return func(wl *kueue.Workload) {
		m.set(wl, kueue.WorkloadEvicted, true, reason, message)
		wl.Status.ClusterName, wl.Status.NominatedClusterNames = nil, nil
		for i, c := range wl.Status.AdmissionChecks {
			if c.State != kueue.CheckStatePending {
				wl.Status.AdmissionChecks[i] = kueue.AdmissionCheckState{
					Name: c.Name, State: kueue.CheckStatePending, LastTransitionTime: m.Cluster.Now(),
					Message: "Reset to Pending after eviction. Previously: " + string(c.State),
				}
			}
		}
		countEviction(wl, reason)
	}
}

func countEviction(wl *kueue.Workload, reason string) {
	if wl.Status.SchedulingStats == nil {
		wl.Status.SchedulingStats = &kueue.SchedulingStats{}
	}
	stats := wl.Status.SchedulingStats
	for i := range stats.Evictions {
		if stats.Evictions[i].Reason == reason {
			stats.Evictions[i].Count++
			return
		}
	}
	stats.Evictions = append(stats.Evictions, kueue.WorkloadSchedulingStatsEviction{Reason: reason, Count: 1})
}

// Evict takes the quota back for another; false when the Workload has none to give.
func (m *Model) Evict(wl *kueue.Workload) bool {
	if !is(wl, kueue.WorkloadQuotaReserved) || is(wl, kueue.WorkloadEvicted) || is(wl, kueue.WorkloadFinished) {
		return false
	}
	m.Cluster.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
		m.evicts(kueue.WorkloadEvictedByPreemption, "Preempted to accommodate another workload")(wl)
		m.set(wl, kueue.WorkloadPreempted, true, "InClusterQueue", "Preempted to accommodate another workload")
	})
	return true
}

// release gives the quota of an evicted Workload back to the queue.
func (m *Model) release(wl *kueue.Workload) {
	wl.Status.Admission = nil
	m.set(wl, kueue.WorkloadQuotaReserved, false, "Pending", "evicted")
	if is(wl, kueue.WorkloadAdmitted) {
		m.set(wl, kueue.WorkloadAdmitted, false, "NoReservation", "The workload has no reservation")
	}
}

// SetActive activates or deactivates a Workload.
func (m *Model) SetActive(wl *kueue.Workload, active bool) {
	key := cluster.KeyOf(wl)
	m.Cluster.Edit(key, func(o clientObject) { o.(*kueue.Workload).Spec.Active = &active })
	if !active {
		m.Cluster.Kueue(key, func(wl *kueue.Workload) {
			if is(wl, kueue.WorkloadDeactivationTarget) {
				m.set(wl, kueue.WorkloadDeactivationTarget, false, "Deactivated", "")
			}
		})
	}
}

// Reserve gives a waiting Workload quota; false when it does not wait.
func (m *Model) Reserve(wl *kueue.Workload) bool { return m.force("reserve quota for "+wl.Name, wl) }

// Admit lets a Workload have what it waits for, reservation and admission; false when it does not wait.
func (m *Model) Admit(wl *kueue.Workload) bool {
	did := m.force("reserve quota for "+wl.Name, wl)
	wl = m.Cluster.Workload(wl.Namespace, wl.Name)
	return m.force("admit "+wl.Name, wl) || did
}

func (m *Model) force(name string, wl *kueue.Workload) bool {
	for _, s := range m.reconcileWorkload(wl) {
		if s.Name == name {
			s.Do()
			return true
		}
	}
	return false
}

func outOfSync(wl *kueue.Workload) bool {
	return slices.ContainsFunc(wl.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == kueue.WorkloadFinished && c.Status == metav1.ConditionTrue && c.Reason == kueue.WorkloadFinishedReasonOutOfSync
	})
}

// DelayTopology makes an admitted Workload look as if nobody had said that its nodes were found.
func (m *Model) DelayTopology(wl *kueue.Workload) bool {
	if wl.Status.Admission == nil || len(wl.Status.Admission.PodSetAssignments) == 0 {
		return false
	}
	m.Cluster.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
		wl.Status.Admission.PodSetAssignments[0].DelayedTopologyRequest = ptr.To(kueue.DelayedTopologyRequestStatePending)
	})
	return true
}

// BlockOnGate is what Kueue does with a Workload that could have quota if its gate let it preempt; false when it has
// quota, or no closed gate.
func (m *Model) BlockOnGate(wl *kueue.Workload) bool {
	if is(wl, kueue.WorkloadQuotaReserved) || len(wl.Spec.PreemptionGates) == 0 || GateOpenedAt(wl) != nil {
		return false
	}
	m.Cluster.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
		m.set(wl, kueue.WorkloadBlockedOnPreemptionGates, true, kueue.PreemptionGated, "preemption is gated")
	})
	return true
}

// GateOpenedAt is when a Workload was allowed to preempt; nil if it is not.
func GateOpenedAt(wl *kueue.Workload) *metav1.Time {
	for _, g := range wl.Status.PreemptionGates {
		if g.Position == kueue.PreemptionGatePositionOpen {
			return &g.LastTransitionTime
		}
	}
	return nil
}

// FinishOutOfSync ends a Workload as Kueue does when its job is unlike it.
func (m *Model) FinishOutOfSync(wl *kueue.Workload) {
	m.Cluster.Kueue(cluster.KeyOf(wl), func(wl *kueue.Workload) {
		m.set(wl, kueue.WorkloadFinished, true, kueue.WorkloadFinishedReasonOutOfSync, "The prebuilt workload is out of sync with its user job")
	})
}
