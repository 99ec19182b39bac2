package capacity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// way is how a request could be met in a flavor, the larger the better.
type way int

const (
	inNoWay way = iota
	// nobodyToPreempt: there is quota enough in all, and nobody who could be evicted for it.
	nobodyToPreempt
	byPreempting
	byReclaiming
	atOnce
)

// mode is a way, and from how high up in the tree of cohorts it borrows.
type mode struct {
	way    way
	height int
}

// assignment is the flavors that a Workload would get.
type assignment struct {
	mode
	needs map[place]int64
	// short are the places that are not free now.
	short []place
	// never tells that it would not fit into the empty queue either; why says what is missing.
	never bool
	why   string
}

// predictor tries one Workload in one queue.
type predictor struct {
	worker  *Worker
	request *Request
	queue   *node
	used    *usage
	running []Holder
}

// assign gives each set of pods its flavors, one after the other, as Kueue does: the sets before count.
func (p *predictor) assign(sets []podSet) assignment {
	all := assignment{mode: mode{way: atOnce}, needs: map[place]int64{}}
	for _, together := range grouped(sets) {
		asks := map[corev1.ResourceName]int64{}
		for _, ps := range together {
			for name, amount := range ps.total() {
				asks[name] = plus(asks[name], amount)
			}
			if p.queue.group(corev1.ResourcePods) != nil {
				asks[corev1.ResourcePods] = plus(asks[corev1.ResourcePods], ps.count)
			}
		}
		if !p.assignAll(together, asks, &all) {
			return all
		}
	}
	return all
}

// grouped are sets of pods that have to get the same flavors, in order.
func grouped(sets []podSet) [][]podSet {
	var out [][]podSet
	for _, ps := range sets {
		at := slices.IndexFunc(out, func(g []podSet) bool { return ps.group != "" && g[0].group == ps.group })
		if at < 0 {
			out = append(out, []podSet{ps})
		} else {
			out[at] = append(out[at], ps)
		}
	}
	return out
}

// assignAll assigns a flavor of each resource group concerned; false: there never is one in one of them.
func (p *predictor) assignAll(sets []podSet, asks map[corev1.ResourceName]int64, all *assignment) bool {
	if missing := p.uncovered(asks); missing != "" {
		*all = assignment{never: true, why: noFlavorFor(missing)}
		return false
	}
	groups := p.queue.queue.Spec.ResourceGroups
	for i := range groups {
		within := map[corev1.ResourceName]int64{}
		for _, name := range groups[i].CoveredResources {
			if amount, asked := asks[name]; asked {
				within[name] = amount
			}
		}
		if len(within) == 0 {
			continue
		}
		best := p.bestFlavor(&groups[i], sets, within, all.needs)
		if best.way == inNoWay && best.never {
			*all = best
			return false
		}
		all.take(best)
	}
	return true
}

// uncovered is a resource that the queue has in no flavor, unless Kueue seems to be told to leave it out.
func (p *predictor) uncovered(asks map[corev1.ResourceName]int64) corev1.ResourceName {
	for _, name := range sortedNames(asks) {
		counts := p.request.Counted == nil || p.request.Counted[name]
		if counts && asks[name] > 0 && p.queue.group(name) == nil {
			return name
		}
	}
	return ""
}

// take adds what another resource group would give.
func (a *assignment) take(part assignment) {
	for at, amount := range part.needs {
		a.needs[at] = plus(a.needs[at], amount)
	}
	a.short = append(a.short, part.short...)
	if part.why != "" && part.way <= a.way {
		a.why = part.why
	}
	a.mode = mode{min(a.way, part.way), max(a.height, part.height)}
}

// bestFlavor goes through the flavors of a group until the queue's policy says that one is good enough.
func (p *predictor) bestFlavor(group *kueue.ResourceGroup, sets []podSet, asks map[corev1.ResourceName]int64, before map[place]int64) assignment {
	best := assignment{never: true, why: "its queue has no flavors"}
	policy := p.policy()
	for i, flavor := range group.Flavors {
		tried := p.tryFlavor(flavor.Name, sets, asks, before)
		if !policy.goesOn(tried.mode) {
			return tried
		}
		never := best.never && tried.never
		if i == 0 || policy.prefers(tried.mode, best.mode) || best.way == inNoWay && best.never && !tried.never {
			best = tried
		}
		best.never = never
	}
	return best
}

// tryFlavor is how well one flavor would do.
func (p *predictor) tryFlavor(flavor kueue.ResourceFlavorReference, sets []podSet, asks map[corev1.ResourceName]int64, before map[place]int64) assignment {
	for _, ps := range sets {
		if why := p.worker.suits(flavor, ps.spec); why != "" {
			return assignment{never: true, why: why}
		}
	}
	tried := assignment{mode: mode{way: atOnce}, needs: map[place]int64{}}
	worst, policy := mode{way: atOnce}, p.policy()
	for _, name := range sortedNames(asks) {
		at := place{flavor, name}
		amount := plus(before[at], asks[name])
		found := p.meets(at, amount)
		if found.way == inNoWay {
			most := p.queue.potential(at)
			return assignment{never: amount > most, why: p.shortage(at, amount), short: []place{at}, needs: map[place]int64{at: asks[name]}}
		}
		if policy.prefers(worst, found) {
			worst = found
		}
		if found.way < atOnce {
			tried.short, tried.why = append(tried.short, at), p.shortage(at, amount)
		}
		tried.needs[at] = asks[name]
	}
	tried.mode = worst
	return tried
}

// meets tells how one quota would meet a request.
func (p *predictor) meets(at place, amount int64) mode {
	if amount > p.queue.potential(at) {
		return mode{}
	}
	height, above := p.used.borrows(p.queue, at, amount)
	if amount <= p.used.available(p.queue, at) {
		return mode{atOnce, height}
	}
	if amount > p.queue.quotas[at].nominal && !above && !mayBorrowAndPreempt(p.queue.queue) {
		return mode{}
	}
	return p.preempts(map[place]int64{at: amount}, []place{at})
}

func sortedNames(asks map[corev1.ResourceName]int64) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(asks))
	for name := range asks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fungibility is a queue's policy on when another flavor is tried.
type fungibility struct{ whenBorrowing, whenPreempting, borrowFirst bool }

func (p *predictor) policy() fungibility {
	f := p.queue.queue.Spec.FlavorFungibility
	if f == nil {
		return fungibility{borrowFirst: true}
	}
	return fungibility{
		whenBorrowing: f.WhenCanBorrow == kueue.TryNextFlavor, whenPreempting: f.WhenCanPreempt == kueue.TryNextFlavor,
		borrowFirst: f.Preference == nil || *f.Preference != kueue.PreemptionOverBorrowing,
	}
}

// goesOn tells whether the next flavor is tried, too.
func (f fungibility) goesOn(m mode) bool {
	switch m.way {
	case inNoWay, nobodyToPreempt:
		return true
	case byPreempting, byReclaiming:
		return f.whenPreempting || f.whenBorrowing && m.height > 0
	}
	return f.whenBorrowing && m.height > 0
}

// prefers tells whether one mode is better than another.
func (f fungibility) prefers(a, b mode) bool {
	lowest := min(a.way, b.way)
	switch {
	case lowest <= nobodyToPreempt && a.way != b.way:
		return a.way > b.way
	case lowest == inNoWay:
		return false
	case f.borrowFirst && a.way != b.way, a.height == b.height:
		return a.way > b.way
	}
	return a.height < b.height
}
