package capacity

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Request is what a Workload asks of a worker's queue.
type Request struct {
	// Queue is the LocalQueue there that it would wait in; nil: there is none.
	Queue *kueue.LocalQueue
	// NamespaceLabels are those of the namespace on the worker; nil: not known, so that only its name can be matched.
	NamespaceLabels map[string]string
	PodSets         []kueue.PodSet
	Reclaimable     []kueue.ReclaimablePod
	Priority        int32
	Created         time.Time
	// Counted are the resources that Kueue on the manager counts for this Workload; nil: not known. What it does not
	// count, and the worker's queue does not have, is taken for excluded there too.
	Counted map[corev1.ResourceName]bool
}

// Holder is a Workload that is known by itself: it has quota of a ClusterQueue on the worker, or waits for some.
type Holder struct {
	Queue    kueue.ClusterQueueReference
	Priority int32
	Created  time.Time
	// Holds is what it has in each flavor.
	Holds []Held
	// Visible tells that the status of its queue counts it already.
	Visible bool
}

// Held is an amount of one resource in one flavor, in thousandths for CPU and in units for all else, as Kueue counts.
type Held struct {
	Flavor   kueue.ResourceFlavorReference
	Resource corev1.ResourceName
	Amount   int64
}

// HoldsOf is what an admitted Workload has of its queue.
func HoldsOf(admission *kueue.Admission) []Held {
	if admission == nil {
		return nil
	}
	var all []Held
	for _, ps := range admission.PodSetAssignments {
		for name, flavor := range ps.Flavors {
			all = append(all, Held{flavor, name, amountOf(name, ps.ResourceUsage[name])})
		}
	}
	return all
}

// podSet is one set of pods, with what one of them asks for.
type podSet struct {
	name     kueue.PodSetReference
	spec     *corev1.PodSpec
	group    string // those of one group get the same flavors
	count    int64
	minCount int64
	asks     map[corev1.ResourceName]int64
}

// total is what all its pods ask for.
func (ps *podSet) total() map[corev1.ResourceName]int64 {
	all := make(map[corev1.ResourceName]int64, len(ps.asks)+1)
	for name, amount := range ps.asks {
		all[name] = times(amount, ps.count)
	}
	return all
}

func podSetsOf(r *Request) []podSet {
	sets := make([]podSet, 0, len(r.PodSets))
	for i := range r.PodSets {
		from := &r.PodSets[i]
		ps := podSet{name: from.Name, spec: &from.Template.Spec, count: int64(max(from.Count, 0)), asks: map[corev1.ResourceName]int64{}}
		if t := from.TopologyRequest; t != nil && t.PodSetGroupName != nil {
			ps.group = *t.PodSetGroupName
		}
		for _, done := range r.Reclaimable {
			if done.Name == from.Name {
				ps.count = max(ps.count-int64(done.Count), 0)
			}
		}
		ps.minCount = ps.count
		if from.MinCount != nil {
			ps.minCount = min(max(int64(*from.MinCount), 0), ps.count)
		}
		for name, quantity := range resource.PodRequests(&corev1.Pod{Spec: *ps.spec}, resource.PodResourcesOptions{}) {
			ps.asks[name] = amountOf(name, quantity)
		}
		sets = append(sets, ps)
	}
	return sets
}

// scaled takes step of all the pods away that may be left out, in the same proportion from each set.
func scaled(sets []podSet, step, steps int64) []podSet {
	out := slices.Clone(sets)
	for i := range out {
		out[i].count -= int64(float64(out[i].count-out[i].minCount) * float64(step) / float64(max(steps, 1)))
	}
	return out
}

// spare is how many pods may be left out in all.
func spare(sets []podSet) int64 {
	total := int64(0)
	for _, ps := range sets {
		total += ps.count - ps.minCount
	}
	return total
}
