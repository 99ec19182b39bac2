package demo

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// example is the sample of one kind: an object, or a group of them.
type example struct {
	kind    kind
	objects []*unstructured.Unstructured
}

// title is how the table calls it.
func (e example) title() string {
	name := e.objects[0].GetName()
	if len(e.objects) > 1 {
		name = e.objects[0].GetLabels()[groupLabel]
	}
	return e.kind.name + "/" + name
}

// groupLabel is Kueue's, on the pods of a group.
const groupLabel = "kueue.x-k8s.io/pod-group-name"

// row tells how an example is, by its objects and Workloads as the manager has them now.
func (e example) row(now []*unstructured.Unstructured, workloads []kueue.Workload) Row {
	r := Row{Job: e.title(), Worker: workersOf(workloads)}
	var all []seen
	for _, o := range now {
		all = append(all, see(o, e.kind.serves))
	}
	s := together(all)
	r.State, r.Progress, r.Why = s.state, s.progress, s.why
	if r.State == "" {
		r.State, r.Why = leastOf(workloads)
		if len(workloads) == 0 {
			r.Why = e.kind.patience
		}
	}
	return r
}

// together is the state of a group: over when all are, and running when any does.
func together(all []seen) seen {
	if len(all) == 1 {
		return all[0]
	}
	var group seen
	over := 0
	for _, s := range all {
		switch {
		case s.state == Failed:
			group.state, group.why = Failed, s.why
			over++
		case s.state.over():
			over++
		}
	}
	group.progress = fmt.Sprintf("%d/%d over", over, len(all))
	begun := slices.ContainsFunc(all, func(s seen) bool { return s.state != "" })
	switch {
	case over == len(all) && group.state == "":
		group.state = Succeeded
	case over < len(all) && begun:
		group.state, group.why = Running, ""
	}
	return group
}

// leastOf is the state of the Workload that is least far on its way to a worker.
func leastOf(workloads []kueue.Workload) (State, string) {
	way := []State{Submitted, Queued, Offered, Placing}
	state, why := State(""), ""
	for i := range workloads {
		s, w := dispatched(&workloads[i])
		if state == "" || slices.Index(way, s) < slices.Index(way, state) {
			state, why = s, w
		}
	}
	if state == "" {
		return Submitted, ""
	}
	return state, why
}

// workersOf names the workers that have any of the Workloads.
func workersOf(workloads []kueue.Workload) string {
	var names []string
	for i := range workloads {
		if name := workloads[i].Status.ClusterName; name != nil && !slices.Contains(names, *name) {
			names = append(names, *name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// owners is who owns what, by UID.
type owners map[types.UID][]metav1.OwnerReference

// lead tells whether one of the references leads to a root, perhaps over owners of owners.
func (o owners) lead(references []metav1.OwnerReference, roots []types.UID) bool {
	looked := map[types.UID]bool{}
	for next := slices.Clone(references); len(next) > 0; next = next[1:] {
		uid := next[0].UID
		if slices.Contains(roots, uid) {
			return true
		}
		if !looked[uid] {
			looked[uid] = true
			next = append(next, o[uid]...)
		}
	}
	return false
}

// of picks the Workloads that were made for the objects.
func (o owners) of(objects []*unstructured.Unstructured, workloads []kueue.Workload) []kueue.Workload {
	var roots []types.UID
	for _, object := range objects {
		roots = append(roots, object.GetUID())
	}
	var found []kueue.Workload
	for _, wl := range workloads {
		if o.lead(wl.OwnerReferences, roots) {
			found = append(found, wl)
		}
	}
	return found
}
