package capacity

// usage is what would be used if some Workloads came or went: a worker's own numbers, and those that differ.
type usage struct {
	changed map[*node]map[place]int64
}

func (u *usage) of(n *node, at place) int64 {
	if changed, found := u.changed[n][at]; found {
		return changed
	}
	return n.usage[at]
}

func (u *usage) set(n *node, at place, amount int64) {
	if u.changed == nil {
		u.changed = map[*node]map[place]int64{}
	}
	if u.changed[n] == nil {
		u.changed[n] = map[place]int64{}
	}
	u.changed[n][at] = amount
}

// empty is a worker where nobody runs.
func (w *Worker) empty() *usage {
	u := &usage{}
	for _, n := range w.queues {
		for up := n; up != nil; up = up.parent {
			for at := range up.usage {
				u.set(up, at, 0)
			}
		}
	}
	return u
}

// clone lets one try what is taken back afterwards.
func (u *usage) clone() *usage {
	out := &usage{}
	for n, all := range u.changed {
		for at, amount := range all {
			out.set(n, at, amount)
		}
	}
	return out
}

// add has a node use more, or less, than before; what it borrows is its parent's to use.
func (u *usage) add(n *node, at place, amount int64) {
	for ; n != nil && amount != 0; n = n.parent {
		before := max(minus(u.of(n, at), n.kept(at)), 0)
		u.set(n, at, plus(u.of(n, at), amount))
		amount = minus(max(minus(u.of(n, at), n.kept(at)), 0), before)
	}
}

// idle is what a node keeps for itself and does not use.
func (u *usage) idle(n *node, at place) int64 {
	return max(minus(n.kept(at), u.of(n, at)), 0)
}

// available is how much more a node could use now; negative where more is used than there is.
func (u *usage) available(n *node, at place) int64 {
	if n.parent == nil {
		return minus(n.subtree[at], u.of(n, at))
	}
	above := u.available(n.parent, at)
	if limit := n.quotas[at].borrow; limit != nil {
		lent := minus(n.subtree[at], n.kept(at))
		used := max(minus(u.of(n, at), n.kept(at)), 0)
		above = min(above, plus(minus(lent, used), *limit))
	}
	return plus(u.idle(n, at), above)
}

// isWithin tells whether a node with so much more stays within its quota.
func (u *usage) isWithin(n *node, at place, more int64) bool {
	return plus(u.of(n, at), more) <= n.subtree[at]
}

// borrows tells from how high up in the tree a queue would borrow, 0 for not at all, and whether somebody above that
// could be asked to give quota back.
func (u *usage) borrows(n *node, at place, amount int64) (height int, above bool) {
	if u.isWithin(n, at, amount) || n.parent == nil {
		return 0, n.parent != nil
	}
	left := minus(amount, u.idle(n, at))
	for up := n.parent; ; up = up.parent {
		if u.isWithin(up, at, left) || up.parent == nil {
			return up.height, up.parent != nil && u.isWithin(up, at, left)
		}
		left = minus(left, u.idle(up, at))
	}
}
