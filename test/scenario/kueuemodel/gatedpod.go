package kueuemodel

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Gate keeps a new pod from running, as Kueue's webhook does, and on the manager Ferry's.
func (m *Model) Gate(pod *unstructured.Unstructured) {
	gates := []any{map[string]any{"name": kinds.KueueGate}}
	if m.Manager && !m.Ungated {
		gates = append(gates, map[string]any{"name": kinds.Gate})
		label(pod, kinds.GatedLabel, "true")
	}
	_ = unstructured.SetNestedSlice(pod.Object, gates, "spec", "schedulingGates")
}

// reconcilePod is the next thing that Kueue does for a pod whose Workload is of a
// known name, or a node where it may run.
func (m *Model) reconcilePod(pod *unstructured.Unstructured, wl *kueue.Workload) Step {
	suspended := gated(pod, kinds.KueueGate)
	switch {
	case wl == nil:
		if !suspended {
			return m.remove("stop, without a Workload,", pod)
		}
	case is(wl, kueue.WorkloadFinished):
	case !wl.DeletionTimestamp.IsZero():
		return Step{Name: "stop " + pod.GetName() + ", as its Workload goes", Do: func() {
			m.Cluster.Remove(cluster.KeyOf(pod))
			m.Cluster.Edit(cluster.KeyOf(wl), func(o client.Object) { o.SetFinalizers(nil) })
		}}
	case !owns(pod, wl):
		return Step{Name: "let " + pod.GetName() + " own " + wl.Name, Do: func() {
			m.Cluster.Edit(cluster.KeyOf(wl), func(o client.Object) { o.SetOwnerReferences(append(o.GetOwnerReferences(), ownerOf(pod))) })
		}}
	case is(wl, kueue.WorkloadEvicted):
		if !suspended {
			return m.remove("stop", pod)
		}
		if is(wl, kueue.WorkloadQuotaReserved) {
			return m.kueue("release the quota of", wl, m.release)
		}
	case suspended && is(wl, kueue.WorkloadAdmitted):
		return Step{Name: "ungate " + pod.GetName(), Do: func() { m.ungate(pod) }}
	case !suspended && !is(wl, kueue.WorkloadAdmitted):
		return m.remove("stop, as not admitted,", pod)
	}
	return m.kubelet(pod)
}

// kubelet runs a pod that no gate holds back.
func (m *Model) kubelet(pod *unstructured.Unstructured) Step {
	if ended, _ := podEnded(pod); ended || len(gatesOf(pod)) > 0 || Ready(pod) {
		return Step{}
	}
	return m.status("run", pod, func(status map[string]any) {
		status["phase"] = "Running"
		m.condition(status, "PodScheduled", "True", "Scheduled")
		m.condition(status, "Ready", "True", "Ready")
	})
}

func (m *Model) ungate(pod *unstructured.Unstructured) {
	m.Cluster.Edit(cluster.KeyOf(pod), func(o client.Object) {
		rest := slices.DeleteFunc(gatesOf(pod), func(g any) bool { return g.(map[string]any)["name"] == kinds.KueueGate })
		u := o.(*unstructured.Unstructured)
		if len(rest) == 0 {
			unstructured.RemoveNestedField(u.Object, "spec", "schedulingGates")
			return
		}
		_ = unstructured.SetNestedSlice(u.Object, rest, "spec", "schedulingGates")
	})
}

func gatesOf(pod *unstructured.Unstructured) []any {
	gates, _, _ := unstructured.NestedSlice(pod.Object, "spec", "schedulingGates")
	return gates
}

func gated(pod *unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(gatesOf(pod), func(g any) bool { return g.(map[string]any)["name"] == name })
}

// Ready tells whether a pod runs and is ready.
func Ready(pod *unstructured.Unstructured) bool { return hasCondition(pod, "Ready", "True") }

func (m *Model) remove(why string, obj client.Object) Step {
	key := cluster.KeyOf(obj)
	return Step{Name: why + " " + key.String(), Do: func() { m.Cluster.Remove(key) }}
}
