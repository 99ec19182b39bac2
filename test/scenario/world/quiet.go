package world

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/plan"
)

// change is what a user does to a set that runs.
func (g *game) change(name string) {
	w := g.world
	if g.rand.IntN(2) == 0 {
		replicas := int64(g.rand.IntN(4))
		w.Tracef("user: scale %s to %d", name, replicas)
		w.Scale(name, replicas)
		return
	}
	image := fmt.Sprintf("serve:%d", g.rand.IntN(1000))
	w.Tracef("user: roll out %s of %s", image, name)
	w.Roll(name, image)
}

// disturb does something to a set, and tells which replica alone may feel it.
func (g *game) disturb(name string) int {
	w, wls := g.world, g.world.Workloads(name)
	if len(wls) == 0 || g.rand.IntN(3) > 0 {
		g.change(name)
		return -1
	}
	i := g.rand.IntN(len(wls))
	part, home := fmt.Sprintf("%s/%d", name, i), *wls[i].Status.ClusterName
	switch g.rand.IntN(3) {
	case 0:
		w.Tracef("manager: %s preempted", part)
		w.Kueue.Evict(wls[i])
	case 1:
		w.Tracef("%s: %s preempted", home, part)
		w.workers[home].Kueue.Evict(w.Copy(home, part))
	default:
		w.Tracef("%s: somebody deletes the copy of %s", home, part)
		w.DeleteOnWorker(home, part, "Workload")
	}
	return i
}

// quiet scales and rolls sets, and takes single replicas away, when nothing else happens: the others run on undisturbed.
func (g *game) quiet() {
	for range 3 * len(g.sets) {
		if len(g.world.violations) > 0 {
			return
		}
		name := pick(g.rand, g.sets...)
		set := g.world.Manager.Job(Namespace, name)
		if set == nil {
			continue
		}
		before := g.world.copiesOf(set)
		// Each cluster may be the first to see the change through.
		g.world.slow = pick(g.rand, "", ManagerName, pick(g.rand, g.config...))
		hit := g.disturb(name)
		if g.settle(); len(g.world.violations) > 0 {
			return
		}
		after := g.world.copiesOf(set)
		for i := range min(len(before), len(after)) {
			if i != hit && before[i] != after[i] {
				g.world.Violation("replica %d of %s was disturbed: %v became %v", i, name, before[i], after[i])
			}
		}
	}
}

// resident is a copy of a Workload, and the reservation of the original, which is another one after every eviction.
type resident struct {
	uid         types.UID
	reservation string
}

// copiesOf are those of a set's Workloads in the order of its replicas.
func (w *World) copiesOf(set *unstructured.Unstructured) []resident {
	var all []resident
	for _, wl := range w.Workloads(set.GetName()) {
		r := resident{reservation: plan.Reservation(wl)}
		if c := w.workers[*wl.Status.ClusterName].Cluster.Workload(wl.Namespace, wl.Name); c != nil {
			r.uid = c.GetUID()
		}
		all = append(all, r)
	}
	return all
}
