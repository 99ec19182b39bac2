package kueuemodel

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/scenario/cluster"
)

// reconcileSinglePod is what Kueue and its node could do next for a pod that is a job of its own.
func (m *Model) reconcileSinglePod(pod *unstructured.Unstructured) []Step {
	if pod.GetLabels()[QueueLabel] == "" {
		return nil
	}
	wl := m.WorkloadOf(pod)
	ended, success := Ended(pod)
	switch {
	case wl == nil && prebuilt(pod) == "" && Suspended(pod):
		return []Step{{Name: "make the Workload of " + pod.GetName(), Do: func() { m.makeWorkload(pod) }}}
	case wl != nil && prebuilt(pod) != "" && !metav1.IsControlledBy(wl, pod):
		return []Step{{Name: "adopt " + wl.Name, Do: func() { m.adopt(wl, pod) }}}
	case is(wl, kueue.WorkloadFinished) && ended:
		return []Step{m.removeFinalizer(wl)}
	case is(wl, kueue.WorkloadFinished):
		return append(m.endsOf(pod), m.removeFinalizer(wl)) // for another reason than the pod's end, which comes all the same
	case wl != nil && ended:
		return []Step{m.finish(wl, pod, success)}
	}
	return append(m.endsOf(pod), m.reconcilePod(pod, wl))
}

// endsOf are the ends that a running pod may come to, if it has one.
func (m *Model) endsOf(pod *unstructured.Unstructured) []Step {
	policy, _, _ := unstructured.NestedString(pod.Object, "spec", "restartPolicy")
	if policy != "Never" || !Ready(pod) || m.Manager {
		return nil
	}
	return []Step{m.choice(m.end(pod, podSucceeded)), m.choice(m.end(pod, podFailed))}
}

const (
	podSucceeded = "Succeeded"
	podFailed    = "Failed"
)

func (m *Model) end(pod *unstructured.Unstructured, phase string) Step {
	return m.status("let it be "+phase+", pod", pod, func(status map[string]any) {
		status["phase"] = phase
		m.condition(status, "Ready", "False", "Pod"+phase)
	})
}

func (m *Model) finishPod(pod *unstructured.Unstructured, success bool) bool {
	if !Ready(pod) {
		return false
	}
	phase := podSucceeded
	if !success {
		phase = podFailed
	}
	m.end(pod, phase).Do()
	return true
}

// podEnded tells whether a pod is over, and how.
func podEnded(pod *unstructured.Unstructured) (ended, success bool) {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return phase == podSucceeded || phase == podFailed, phase == podSucceeded
}

func isPod(job *unstructured.Unstructured) bool { return job.GetKind() == cluster.Pod.Kind }
