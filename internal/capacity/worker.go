package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Worker is what Kueue on one worker has to give: its queues in their cohorts. It is made once for each change there
// and never changed, so that any number of predictions may read it.
type Worker struct {
	queues  map[kueue.ClusterQueueReference]*node
	flavors map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor
}

// place is one quota: of a resource in a flavor.
type place struct {
	flavor   kueue.ResourceFlavorReference
	resource corev1.ResourceName
}

type limits struct {
	nominal      int64
	borrow, lend *int64
}

// node is a ClusterQueue or a Cohort.
type node struct {
	queue    *kueue.ClusterQueue // nil: a cohort
	parent   *node
	children []*node
	quotas   map[place]limits
	// subtree is its own quota and what its children lend it; usage, what it uses and its children borrow of it.
	subtree, usage map[place]int64
	// height is 0 for a queue, and one more than that of its highest child for a cohort.
	height int
	cyclic bool
}

// NewWorker puts queues and cohorts together. A cohort that only others name has no quota of its own.
func NewWorker(queues []*kueue.ClusterQueue, cohorts []*kueue.Cohort, flavors []*kueue.ResourceFlavor) *Worker {
	w := &Worker{
		queues:  make(map[kueue.ClusterQueueReference]*node, len(queues)),
		flavors: make(map[kueue.ResourceFlavorReference]*kueue.ResourceFlavor, len(flavors)),
	}
	for _, f := range flavors {
		w.flavors[kueue.ResourceFlavorReference(f.Name)] = f
	}
	named := cohortsOf(cohorts, queues)
	for _, n := range named {
		n.cyclic = n.isCyclic(len(named))
	}
	for _, cq := range queues {
		n := &node{queue: cq, quotas: quotasOf(cq.Spec.ResourceGroups), parent: named[cq.Spec.CohortName]}
		n.cyclic = n.parent != nil && n.parent.cyclic
		w.queues[kueue.ClusterQueueReference(cq.Name)] = n
	}
	nodes := slices.AppendSeq(slices.Collect(maps.Values(named)), maps.Values(w.queues))
	for _, n := range nodes {
		n.join()
	}
	for _, n := range nodes {
		if n.parent == nil {
			n.sum()
		}
	}
	return w
}

// cohortsOf are all cohorts that anybody names.
func cohortsOf(cohorts []*kueue.Cohort, queues []*kueue.ClusterQueue) map[kueue.CohortReference]*node {
	named := map[kueue.CohortReference]*node{}
	for _, c := range cohorts {
		named[kueue.CohortReference(c.Name)] = &node{quotas: quotasOf(c.Spec.ResourceGroups)}
	}
	reach := func(name kueue.CohortReference) *node {
		if name != "" && named[name] == nil {
			named[name] = &node{}
		}
		return named[name]
	}
	for _, c := range cohorts {
		named[kueue.CohortReference(c.Name)].parent = reach(c.Spec.ParentName)
	}
	for _, cq := range queues {
		reach(cq.Spec.CohortName)
	}
	return named
}

// isCyclic tells whether a cohort is its own ancestor, or below one that is.
func (n *node) isCyclic(cohorts int) bool {
	for range cohorts + 1 {
		if n = n.parent; n == nil {
			return false
		}
	}
	return true
}

// join makes a node its parent's child; one in a circle of cohorts stands alone.
func (n *node) join() {
	if n.cyclic {
		n.parent = nil
	}
	if n.parent != nil {
		n.parent.children = append(n.parent.children, n)
	}
}

func quotasOf(groups []kueue.ResourceGroup) map[place]limits {
	all := map[place]limits{}
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, q := range flavor.Resources {
				l := limits{nominal: amountOf(q.Name, q.NominalQuota)}
				if q.BorrowingLimit != nil {
					l.borrow = new(amountOf(q.Name, *q.BorrowingLimit))
				}
				if q.LendingLimit != nil {
					l.lend = new(amountOf(q.Name, *q.LendingLimit))
				}
				all[place{flavor.Name, q.Name}] = l
			}
		}
	}
	return all
}

// sum adds up quota and usage from the queues upwards.
func (n *node) sum() {
	n.subtree, n.usage = make(map[place]int64, len(n.quotas)), map[place]int64{}
	for at, l := range n.quotas {
		n.subtree[at] = l.nominal
	}
	if n.queue != nil {
		for _, f := range n.queue.Status.FlavorsReservation {
			for _, r := range f.Resources {
				n.usage[place{f.Name, r.Name}] = amountOf(r.Name, r.Total)
			}
		}
		return
	}
	for _, child := range n.children {
		child.sum()
		n.height = max(n.height, child.height+1)
		for at, amount := range child.subtree {
			n.subtree[at] = plus(n.subtree[at], minus(amount, child.kept(at)))
		}
		for at, amount := range child.usage {
			n.usage[at] = plus(n.usage[at], max(minus(amount, child.kept(at)), 0))
		}
	}
}

// kept is the quota that a node does not lend.
func (n *node) kept(at place) int64 {
	if lend := n.quotas[at].lend; lend != nil {
		return max(minus(n.subtree[at], *lend), 0)
	}
	return 0
}

// potential is the most that a node could ever use, were all else idle.
func (n *node) potential(at place) int64 {
	if n.parent == nil {
		return n.subtree[at]
	}
	most := plus(n.kept(at), n.parent.potential(at))
	if limit := n.quotas[at].borrow; limit != nil {
		most = min(most, plus(n.subtree[at], *limit))
	}
	return most
}

// group is the resource group of a queue that covers a resource.
func (n *node) group(of corev1.ResourceName) *kueue.ResourceGroup {
	for i := range n.queue.Spec.ResourceGroups {
		for _, covered := range n.queue.Spec.ResourceGroups[i].CoveredResources {
			if covered == of {
				return &n.queue.Spec.ResourceGroups[i]
			}
		}
	}
	return nil
}
