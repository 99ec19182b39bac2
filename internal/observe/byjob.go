package observe

import "ferry.dev/ferry/internal/kinds"

// byJob is what is known of jobs on workers. It is kept by job first, as a job is forgotten on all workers at once.
type byJob[V any] map[kinds.Ref]map[string]V

func (b byJob[V]) at(p place) (value V, found bool) {
	value, found = b[p.ref][p.cluster]
	return value, found
}

func (b byJob[V]) put(p place, value V) {
	if b[p.ref] == nil {
		b[p.ref] = map[string]V{}
	}
	b[p.ref][p.cluster] = value
}

func (b byJob[V]) drop(p place) {
	delete(b[p.ref], p.cluster)
	if len(b[p.ref]) == 0 {
		delete(b, p.ref)
	}
}
