package observe

import (
	"slices"
	"strings"
	"time"

	"ferry.dev/ferry/internal/kinds"
)

// family is where the jobs of one family are, as of the last look at each: a look is then as quick for the pods of a
// large Deployment as for those of a small one.
type family struct {
	members map[kinds.Ref]string // to their workers; empty while a job has none
	homes   map[string]int       // how many members each worker has
	first   first
}

// first is the job that chooses a worker for its family.
type first struct {
	ref kinds.Ref
	at  time.Time
}

// knowsFamily tells whether the members of a family were noted.
func (m *Memory) knowsFamily(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.families[name] != nil
}

// joins notes that a job of a family is assigned to a worker, or to none, and returns those who wait for that: all
// that have none, if it is the first of the family that has one.
func (m *Memory) joins(name string, ref kinds.Ref, worker string) (woken []kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families[name]
	if f == nil {
		f = &family{members: map[kinds.Ref]string{}, homes: map[string]int{}}
		m.families[name] = f
	}
	found := len(f.homes) > 0
	m.relatives[ref] = name
	f.move(f.members[ref], worker)
	f.members[ref] = worker
	if !found && worker != "" {
		for member, home := range f.members {
			if home == "" {
				woken = append(woken, member)
			}
		}
	}
	slices.SortFunc(woken, func(a, b kinds.Ref) int { return strings.Compare(a.Name, b.Name) })
	return woken
}

// leaves notes that a job is gone. If it was the one that chooses, the returned one is to choose in its place.
func (m *Memory) leaves(ref kinds.Ref) (woken []kinds.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, is := m.relatives[ref]
	if !is {
		return nil
	}
	f := m.families[name]
	f.move(f.members[ref], "")
	delete(f.members, ref)
	delete(m.relatives, ref)
	if len(f.members) == 0 {
		delete(m.families, name)
	}
	if f.first.ref != ref {
		return nil
	}
	f.first = first{}
	next, found := f.next()
	if !found {
		return nil
	}
	return []kinds.Ref{next}
}

// next is a member that has no worker.
func (f *family) next() (next kinds.Ref, found bool) {
	for member, home := range f.members {
		if home == "" && (!found || strings.Compare(member.Name, next.Name) < 0) {
			next, found = member, true
		}
	}
	return next, found
}

func (f *family) move(from, to string) {
	if from != "" {
		if f.homes[from]--; f.homes[from] == 0 {
			delete(f.homes, from)
		}
	}
	if to != "" {
		f.homes[to]++
	}
}

// homeOf is the worker that most of a family are assigned to; empty if none is.
func (m *Memory) homeOf(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.families[name]; f != nil {
		return most(f.homes)
	}
	return ""
}

// firstOf is the job that chooses a worker for its family: the first of its members that asks, for some time. Two that
// are decided about at once must not both choose.
func (m *Memory) firstOf(name string, asking kinds.Ref, now time.Time) first {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families[name]
	if f == nil {
		return first{asking, now} // it left meanwhile
	}
	if f.first.ref == (kinds.Ref{}) || now.Sub(f.first.at) > choosesFor {
		f.first = first{asking, now}
	}
	return f.first
}

func most(counts map[string]int) string {
	best := ""
	for name, n := range counts {
		if best == "" || n > counts[best] || (n == counts[best] && name < best) {
			best = name
		}
	}
	return best
}
