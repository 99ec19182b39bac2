package capacity

import (
	"cmp"
	"slices"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// victim is a Workload that could be evicted, or, where only a queue's status tells of it, what its queue borrows.
type victim struct {
	queue    *node
	holds    map[place]int64
	priority int32
	created  time.Time
	// gentle tells that it goes only if the request borrows nothing then.
	gentle bool
}

func mayBorrowAndPreempt(cq *kueue.ClusterQueue) bool {
	p := cq.Spec.Preemption
	return p != nil && p.BorrowWithinCohort != nil && p.BorrowWithinCohort.Policy == kueue.BorrowWithinCohortPolicyLowerPriority
}

// preempts tells whether evictions would let the request fit, and whether all of them are in other queues.
func (p *predictor) preempts(needs map[place]int64, short []place) mode {
	victims := p.victims(needs, short)
	if len(victims) == 0 {
		return p.modeWithout(nobodyToPreempt, p.used, needs)
	}
	for _, borrowing := range p.attempts(victims, short) {
		if way, after := p.evict(victims, needs, short, borrowing); way > nobodyToPreempt {
			return p.modeWithout(way, after, needs)
		}
	}
	return p.modeWithout(nobodyToPreempt, p.used, needs)
}

// evict has one victim after the other go until the request fits.
func (p *predictor) evict(victims []victim, needs map[place]int64, short []place, borrowing bool) (way, *usage) {
	now, reached := p.used.clone(), byReclaiming
	for _, v := range victims {
		if borrowing && v.gentle || v.queue != p.queue && !v.isBorrowing(now, short) {
			continue
		}
		for at, amount := range v.holds {
			now.add(v.queue, at, -amount)
		}
		if v.queue == p.queue {
			reached = byPreempting
		}
		if p.fits(now, needs, borrowing) {
			return reached, now
		}
	}
	return nobodyToPreempt, now
}

func (p *predictor) modeWithout(w way, now *usage, needs map[place]int64) mode {
	m := mode{way: w}
	for at, amount := range needs {
		height, _ := now.borrows(p.queue, at, amount)
		m.height = max(m.height, height)
	}
	return m
}

// attempts are whether the request may borrow after the evictions: those that allow no borrowing have more victims.
func (p *predictor) attempts(victims []victim, short []place) []bool {
	under := !slices.ContainsFunc(short, func(at place) bool { return p.used.of(p.queue, at) >= p.queue.quotas[at].nominal })
	switch gentle := slices.ContainsFunc(victims, func(v victim) bool { return v.gentle }); {
	case !gentle, !mayBorrowAndPreempt(p.queue.queue) && !under:
		return []bool{true}
	}
	return []bool{true, false}
}

func (p *predictor) fits(now *usage, needs map[place]int64, borrowing bool) bool {
	for at, amount := range needs {
		if amount > now.available(p.queue, at) || !borrowing && !now.isWithin(p.queue, at, amount) {
			return false
		}
	}
	return true
}

func (v *victim) isBorrowing(now *usage, short []place) bool {
	return slices.ContainsFunc(short, func(at place) bool { return !now.isWithin(v.queue, at, 0) })
}

// victims are those that may be evicted for the request by the queue's policies, other queues' first, the least
// important and newest of them first.
func (p *predictor) victims(needs map[place]int64, short []place) []victim {
	policy := p.queue.queue.Spec.Preemption
	if policy == nil {
		return nil
	}
	advantage := p.advantages(needs)
	var all []victim
	rest := map[*node]map[place]int64{}
	for _, h := range p.running {
		n := p.worker.queues[h.Queue]
		if n == nil {
			continue
		}
		v := victim{queue: n, priority: h.Priority, created: h.Created, holds: map[place]int64{}}
		for _, held := range h.Holds {
			at := place{held.Flavor, held.Resource}
			v.holds[at] = plus(v.holds[at], held.Amount)
		}
		note(rest, &v)
		if p.mayEvict(policy, &v, short, advantage) {
			all = append(all, v)
		}
	}
	if policy.ReclaimWithinCohort == kueue.PreemptionPolicyAny {
		all = append(all, p.borrowers(rest, short, advantage)...)
	}
	slices.SortStableFunc(all, func(a, b victim) int {
		return cmp.Or(order(a.queue == p.queue, b.queue == p.queue), cmp.Compare(a.priority, b.priority), b.created.Compare(a.created))
	})
	return all
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func note(rest map[*node]map[place]int64, v *victim) {
	if rest[v.queue] == nil {
		rest[v.queue] = map[place]int64{}
	}
	for at, amount := range v.holds {
		rest[v.queue][at] = plus(rest[v.queue][at], amount)
	}
}

// mayEvict applies the policies to one Workload, and notes on which terms it goes.
func (p *predictor) mayEvict(policy *kueue.ClusterQueuePreemption, v *victim, short []place, advantage map[*node]bool) bool {
	if !slices.ContainsFunc(short, func(at place) bool { return v.holds[at] > 0 }) {
		return false
	}
	if v.queue == p.queue {
		return p.outranks(policy.WithinClusterQueue, v)
	}
	over, sameTree := advantage[v.queue]
	if !sameTree || !p.isReclaimable(v.queue, short) || !p.outranks(policy.ReclaimWithinCohort, v) {
		return false
	}
	v.gentle = !over && !p.mayBorrowOver(policy, v)
	return true
}

func (p *predictor) mayBorrowOver(policy *kueue.ClusterQueuePreemption, v *victim) bool {
	if !mayBorrowAndPreempt(p.queue.queue) || v.priority >= p.request.Priority {
		return false
	}
	limit := policy.BorrowWithinCohort.MaxPriorityThreshold
	return limit == nil || v.priority <= *limit
}

func (p *predictor) outranks(policy kueue.PreemptionPolicy, v *victim) bool {
	switch policy {
	case kueue.PreemptionPolicyAny:
		return true
	case kueue.PreemptionPolicyLowerPriority:
		return v.priority < p.request.Priority
	case kueue.PreemptionPolicyLowerOrNewerEqualPriority:
		return v.priority < p.request.Priority || v.priority == p.request.Priority && p.request.Created.Before(v.created)
	}
	return false
}

// isReclaimable tells whether a queue, and each cohort on the way up to those that both are in, uses more than its own.
func (p *predictor) isReclaimable(n *node, short []place) bool {
	ours := map[*node]bool{}
	for up := p.queue.parent; up != nil; up = up.parent {
		ours[up] = true
	}
	for ; n != nil && !ours[n]; n = n.parent {
		if !slices.ContainsFunc(short, func(at place) bool { return !p.used.isWithin(n, at, 0) }) {
			return false
		}
	}
	return true
}

// advantages are the queues of the same tree, with whether the request comes before their borrowing whatever its
// priority: it fits into the quota of a part of the tree that they are not in, or borrow from.
func (p *predictor) advantages(needs map[place]int64) map[*node]bool {
	all := map[*node]bool{p.queue: false}
	left, ahead := map[place]int64{}, true
	below := p.queue
	for at, amount := range needs {
		ahead = ahead && p.used.isWithin(below, at, amount)
		left[at] = max(minus(amount, p.used.idle(below, at)), 0)
	}
	for up := below.parent; up != nil; up = up.parent {
		up.each(func(n *node) {
			if _, seen := all[n]; !seen {
				all[n] = ahead
			}
		})
		fits := true
		for at, amount := range left {
			fits = fits && p.used.isWithin(up, at, amount)
			left[at] = max(minus(amount, p.used.idle(up, at)), 0)
		}
		ahead = ahead || fits
	}
	return all
}

// each goes through the queues below a cohort.
func (n *node) each(visit func(*node)) {
	for _, child := range n.children {
		if child.queue != nil {
			visit(child)
		} else {
			child.each(visit)
		}
	}
}

// borrowers are what other queues borrow beyond the Workloads that are known: whose it is does not matter where all
// that is borrowed may be reclaimed.
func (p *predictor) borrowers(known map[*node]map[place]int64, short []place, advantage map[*node]bool) []victim {
	var all []victim
	for _, n := range p.worker.queues {
		over, sameTree := advantage[n]
		if n == p.queue || !sameTree || !p.isReclaimable(n, short) {
			continue
		}
		v := victim{queue: n, holds: map[place]int64{}, gentle: !over}
		for _, at := range short {
			unknown := max(minus(p.used.of(n, at), known[n][at]), 0)
			if amount := min(unknown, max(minus(p.used.of(n, at), n.subtree[at]), 0)); amount > 0 {
				v.holds[at] = amount
			}
		}
		if len(v.holds) > 0 {
			all = append(all, v)
		}
	}
	return all
}
