package e2e_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
)

// outcome is what Kueue made of the probe.
func (w *queueWorld) outcome(seen map[string]*kueue.Workload) capacity.Class {
	wl := seen[w.probe.Name]
	if wl == nil {
		return capacity.Unknown
	}
	reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	switch {
	case reserved == nil:
		return capacity.Unknown
	case reserved.Status == metav1.ConditionTrue:
		return w.borrowsNow(wl)
	case strings.Contains(reserved.Message, "Pending the preemption"):
		return capacity.FitsPreempting
	case w.lacksResource(wl):
		return capacity.NeverFits // whether the message says so depends on the order that Kueue looks at them
	}
	for _, set := range strings.Split(reserved.Message, "couldn't assign flavors to pod set")[1:] {
		if !strings.Contains(set, "insufficient unused quota") && !isTooMuchTogether(set) {
			return capacity.NeverFits
		}
	}
	return capacity.FitsLater
}

// isTooMuchTogether tells whether Kueue says that a set is too much because of the sets before: had those got other
// flavors, there might be room. So whether it is for ever cannot be told from its words.
func isTooMuchTogether(message string) bool {
	return strings.Contains(strings.ReplaceAll(message, "podsets requests (0)", ""), "podsets requests (")
}

// lacksResource tells whether the probe asks for something that its queue does not have at all.
func (w *queueWorld) lacksResource(wl *kueue.Workload) bool {
	covered := map[corev1.ResourceName]bool{}
	for _, cq := range w.queues {
		if cq.Name == string(wl.Spec.QueueName) {
			for _, group := range cq.Spec.ResourceGroups {
				for _, name := range group.CoveredResources {
					covered[name] = true
				}
			}
		}
	}
	for _, ps := range wl.Spec.PodSets {
		for name := range ps.Template.Spec.Containers[0].Resources.Requests {
			if !covered[name] {
				return true
			}
		}
	}
	return false
}

// borrowsNow tells whether its queue uses more than its own, of what the probe got.
func (w *queueWorld) borrowsNow(wl *kueue.Workload) capacity.Class {
	total := map[capacity.Held]int64{}
	for _, other := range append([]*kueue.Workload{wl}, w.running...) {
		if other.Status.Admission.ClusterQueue == wl.Status.Admission.ClusterQueue {
			for _, h := range capacity.HoldsOf(other.Status.Admission) {
				total[capacity.Held{Flavor: h.Flavor, Resource: h.Resource}] += h.Amount
			}
		}
	}
	for _, cq := range w.queues {
		if cq.Name != string(wl.Status.Admission.ClusterQueue) {
			continue
		}
		for _, h := range capacity.HoldsOf(wl.Status.Admission) {
			if total[capacity.Held{Flavor: h.Flavor, Resource: h.Resource}] > nominalOf(cq, h) {
				return capacity.FitsBorrowing
			}
		}
	}
	return capacity.FitsNominal
}

func nominalOf(cq *kueue.ClusterQueue, h capacity.Held) int64 {
	for _, group := range cq.Spec.ResourceGroups {
		for _, f := range group.Flavors {
			for _, q := range f.Resources {
				if f.Name == h.Flavor && q.Name == h.Resource {
					if q.Name == corev1.ResourceCPU {
						return q.NominalQuota.MilliValue()
					}
					return q.NominalQuota.Value()
				}
			}
		}
	}
	return 0
}
