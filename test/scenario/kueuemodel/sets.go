package kueuemodel

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Names of Kueue and of LeaderWorkerSet on what belongs to a set.
const (
	indexAnnotation = "kueue.x-k8s.io/component-workload-index"
	groupIndex      = "leaderworkerset.sigs.k8s.io/group-index"
	setName         = "leaderworkerset.sigs.k8s.io/name"
)

// reconcileSet is what Kueue and the LeaderWorkerSet controller could do next for a
// set. Each of its replicas has one Workload and, in this model, one pod.
func (m *Model) reconcileSet(set *unstructured.Unstructured) []Step {
	var steps []Step
	pods := m.podsOf(set)
	if set.GetLabels()[QueueLabel] != "" {
		steps = append(steps, m.workloadsOfSet(set)...)
		for _, pod := range pods {
			steps = append(steps, m.reconcilePod(pod, m.workloadOfPod(set, pod)))
		}
	}
	return append(steps, m.setController(set, pods)...)
}

// workloadsOfSet makes the missing Workloads on the manager, as on a worker they
// come from there, and deletes those that the set owns and does not need.
func (m *Model) workloadsOfSet(set *unstructured.Unstructured) []Step {
	var steps []Step
	needed := map[string]bool{}
	for i := range Replicas(set) {
		name := workloadName(set, i)
		needed[name] = true
		if m.Manager && m.Cluster.Workload(set.GetNamespace(), name) == nil {
			steps = append(steps, Step{Name: "make the Workload " + name, Do: func() { m.makeWorkloadOfSet(set, name, i) }})
		}
	}
	for _, wl := range m.WorkloadsOf(set) {
		if !needed[wl.Name] && owns(set, wl) {
			steps = append(steps, Step{Name: "delete the unneeded " + wl.Name, Do: func() {
				m.Cluster.Edit(cluster.KeyOf(wl), func(o client.Object) { o.SetFinalizers(nil) })
				m.Cluster.Remove(cluster.KeyOf(wl))
			}})
		}
	}
	return steps
}

func (m *Model) makeWorkloadOfSet(set *unstructured.Unstructured, name string, index int64) {
	wl := newWorkload(set, name)
	wl.Annotations = map[string]string{
		"kueue.x-k8s.io/is-group-workload": "true", indexAnnotation: strconv.FormatInt(index, 10),
		"kueue.x-k8s.io/job-owner-gvk": cluster.Set.String(), "kueue.x-k8s.io/job-owner-name": set.GetName(),
	}
	wl.OwnerReferences = []metav1.OwnerReference{ownerOf(set)}
	if _, err := m.Cluster.Create(wl); err != nil {
		m.Cluster.Violation("Kueue cannot make the Workload of %s: %v", set.GetName(), err)
	}
}

// workloadName is the same on all clusters: Kueue takes the UID of the original.
func workloadName(set *unstructured.Unstructured, index int64) string {
	uid := string(set.GetUID())
	if origin := set.GetAnnotations()[kueue.MultiKueueOriginUIDAnnotation]; origin != "" {
		uid = origin
	}
	return fmt.Sprintf("set-%s-%d-%s", set.GetName(), index, strings.ReplaceAll(uid, "manager-", ""))
}

// setController is the LeaderWorkerSet controller, with the StatefulSet controller and the garbage collector below it.
func (m *Model) setController(set *unstructured.Unstructured, pods []*unstructured.Unstructured) []Step {
	var steps []Step
	for i := range Replicas(set) {
		if !slices.ContainsFunc(pods, func(pod *unstructured.Unstructured) bool { return replicaOf(pod) == i }) {
			steps = append(steps, Step{Name: fmt.Sprintf("make the pod %s-%d", set.GetName(), i), Do: func() { m.makePod(set, i) }})
		}
	}
	for _, pod := range pods {
		if replicaOf(pod) >= Replicas(set) {
			steps = append(steps, m.remove("scale away", pod))
		}
	}
	if want := setStatus(pods); !equality.Semantic.DeepEqual(set.Object["status"], want) {
		steps = append(steps, m.status("count the pods of", set, func(status map[string]any) { maps.Copy(status, want) }))
	}
	return append(steps, m.roll(set, pods))
}

// roll replaces the last pod that is of an old template, once those after it are ready.
func (m *Model) roll(set *unstructured.Unstructured, pods []*unstructured.Unstructured) Step {
	for _, pod := range slices.Backward(pods) {
		switch {
		case Image(pod, "spec") != Image(set, "spec", "leaderWorkerTemplate", "workerTemplate", "spec"):
			return m.remove("roll", pod)
		case !Ready(pod):
			return Step{}
		}
	}
	return Step{}
}

func (m *Model) makePod(set *unstructured.Unstructured, index int64) {
	template, _, _ := unstructured.NestedMap(set.Object, "spec", "leaderWorkerTemplate", "workerTemplate")
	pod := &unstructured.Unstructured{Object: template}
	pod.SetGroupVersionKind(cluster.Pod)
	pod.SetNamespace(set.GetNamespace())
	pod.SetName(fmt.Sprintf("%s-%d", set.GetName(), index))
	pod.SetOwnerReferences([]metav1.OwnerReference{controllerOf(set)})
	label(pod, setName, set.GetName())
	label(pod, groupIndex, strconv.FormatInt(index, 10))
	label(pod, "leaderworkerset.sigs.k8s.io/worker-index", "0")
	annotations := pod.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kinds.SuspendingParent] = "leaderworkerset.x-k8s.io/leaderworkerset"
	pod.SetAnnotations(annotations)
	m.Gate(pod)
	_, _ = m.Cluster.Create(pod)
}

func label(obj *unstructured.Unstructured, name, value string) {
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[name] = value
	obj.SetLabels(labels)
}

func setStatus(pods []*unstructured.Unstructured) map[string]any {
	ready := int64(0)
	for _, pod := range pods {
		if Ready(pod) {
			ready++
		}
	}
	return map[string]any{"replicas": int64(len(pods)), "readyReplicas": ready}
}

// podsOf are the pods of a set, in the order of their replicas.
func (m *Model) podsOf(set *unstructured.Unstructured) []*unstructured.Unstructured {
	var pods []*unstructured.Unstructured
	for _, obj := range m.Cluster.List(cluster.Pod.Kind) {
		if metav1.IsControlledBy(obj, set) {
			pods = append(pods, obj.(*unstructured.Unstructured))
		}
	}
	return pods
}

func (m *Model) workloadOfPod(set, pod *unstructured.Unstructured) *kueue.Workload {
	return m.Cluster.Workload(set.GetNamespace(), workloadName(set, replicaOf(pod)))
}

func replicaOf(pod *unstructured.Unstructured) int64 {
	index, _ := strconv.ParseInt(pod.GetLabels()[groupIndex], 10, 64)
	return index
}

// Replicas is how many replicas a set is to have.
func Replicas(set *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	return n
}

// Image stands for all of a pod's template.
func Image(obj *unstructured.Unstructured, spec ...string) string {
	containers, _, _ := unstructured.NestedSlice(obj.Object, append(spec, "containers")...)
	if len(containers) == 0 {
		return ""
	}
	container, _ := containers[0].(map[string]any)
	name, _ := container["image"].(string)
	return name
}

func owns(owner *unstructured.Unstructured, obj client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
}

func ownerOf(obj *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Name: obj.GetName(), UID: obj.GetUID()}
}
