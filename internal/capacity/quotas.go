package capacity

import (
	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Quota is what a ClusterQueue has of one resource in one flavor, in cores for CPU and in units for all else.
type Quota struct {
	Queue    kueue.ClusterQueueReference
	Flavor   kueue.ResourceFlavorReference
	Resource corev1.ResourceName
	// Free is what it could use more now, what it may borrow included.
	Nominal, Used, Borrowed, Free float64
}

// Quotas are all quotas of the worker, in no order.
func (w *Worker) Quotas() []Quota {
	var all []Quota
	now := &usage{}
	for name, n := range w.queues {
		for at, l := range n.quotas {
			used := n.usage[at]
			all = append(all, Quota{
				Queue: name, Flavor: at.flavor, Resource: at.resource, Nominal: units(at, l.nominal), Used: units(at, used),
				Borrowed: units(at, max(minus(used, l.nominal), 0)), Free: units(at, max(now.available(n, at), 0)),
			})
		}
	}
	return all
}

func units(at place, amount int64) float64 {
	if at.resource == corev1.ResourceCPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}
