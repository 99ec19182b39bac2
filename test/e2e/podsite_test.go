package e2e_test

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/test/fixtures"
)

var (
	podGVK         = corev1.SchemeGroupVersion.WithKind("Pod")
	statefulSetGVK = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	deploymentGVK  = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

type podOption func(*corev1.Pod)

func podAnnotation(name, value string) podOption {
	return func(p *corev1.Pod) { p.Annotations[name] = value }
}

func podLabel(name, value string) podOption {
	return func(p *corev1.Pod) { p.Labels[name] = value }
}

// podRuns is how long the pod runs before it succeeds.
func podRuns(d time.Duration) podOption {
	return podAnnotation(playground.RunForAnnotation, d.String())
}

var podFails = podAnnotation(playground.FailAnnotation, "true")

// podOf is a pod of one CPU in the site's queue, which runs for an hour.
func (s *site) podOf(name string, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Labels: map[string]string{fixtures.QueueLabel: fixtures.Queue}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
		},
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantityOf("1"), corev1.ResourceMemory: quantityOf("16Mi")}
	podRuns(time.Hour)(pod)
	for _, option := range options {
		option(pod)
	}
	return pod
}

// leavePods deletes what users made in a site of pods, before its namespace's Jobs.
func (s *site) leavePods() {
	for _, gvk := range []schema.GroupVersionKind{statefulSetGVK, deploymentGVK, podGVK} {
		s.leaveKind(s.named(gvk, ""))
	}
}

// named is an object of this site by its kind and name, for reading.
func (s *site) named(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(s.namespace)
	obj.SetName(name)
	return obj
}

// pod reads a pod; nil when there is none.
func (s *site) pod(g Gomega, cluster, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	err := on(cluster).Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.Expect(err).NotTo(HaveOccurred())
	return pod
}

// podList are all pods of the site on a cluster, by name.
func (s *site) podList(g Gomega, cluster string) []corev1.Pod {
	var list corev1.PodList
	g.Expect(on(cluster).List(s.ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// podsNamed are those of podList whose names begin so.
func (s *site) podsNamed(g Gomega, cluster, prefix string) []corev1.Pod {
	return slices.DeleteFunc(s.podList(g, cluster), func(p corev1.Pod) bool { return !strings.HasPrefix(p.Name, prefix) })
}

func podReady(p corev1.Pod) bool {
	return podCondition(&p, corev1.PodReady).Status == corev1.ConditionTrue
}

func podCondition(p *corev1.Pod, t corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return corev1.PodCondition{}
}

// expectSameStatus: the manager's pod shows the worker's, but for what each API server computes itself and for its
// addresses, which never leave the worker; and it never gets a node.
func expectSameStatus(g Gomega, manager, worker *corev1.Pod) {
	g.Expect(manager).NotTo(BeNil(), "the pod on the manager")
	g.Expect(worker).NotTo(BeNil(), "the pod on the worker")
	expectGated(g, manager)
	is, want := manager.Status.DeepCopy(), worker.Status.DeepCopy()
	want.PodIP, want.PodIPs, want.HostIP, want.HostIPs = "", nil, "", nil
	for _, status := range []*corev1.PodStatus{is, want} {
		status.ObservedGeneration, status.QOSClass, status.ResourceClaimStatuses = 0, "", nil
		for i := range status.Conditions {
			status.Conditions[i].ObservedGeneration = 0
		}
	}
	g.Expect(is).To(Equal(want), "status of %s", manager.Name)
}

func expectGated(g Gomega, manager *corev1.Pod) {
	g.Expect(manager.Spec.NodeName).To(BeEmpty(), "node of %s on the manager", manager.Name)
	g.Expect(manager.Spec.SchedulingGates).To(ContainElement(corev1.PodSchedulingGate{Name: kinds.Gate}), "gates of %s on the manager", manager.Name)
}

// expectPodsMirrored: the manager has the very pods that the worker has, each with its status, and n of them.
func (s *site) expectPodsMirrored(g Gomega, worker, prefix string, n int) {
	there := s.podsNamed(g, worker, prefix)
	g.Expect(there).To(HaveLen(n), "pods %s on %s: %v", prefix, worker, s.pods(g, worker))
	here := s.podsNamed(g, "manager", prefix)
	g.Expect(here).To(HaveLen(n), "pods %s on the manager: %v", prefix, s.pods(g, "manager"))
	for i := range there {
		g.Expect(here[i].Name).To(Equal(there[i].Name))
		expectSameStatus(g, &here[i], &there[i])
	}
	g.Expect(s.podsNamed(g, other(worker), prefix)).To(BeEmpty(), "pods %s on the other worker", prefix)
}

// awaitWorkerOf waits until the job's Workload is claimed.
func (s *site) awaitWorkerOf(obj *unstructured.Unstructured) (worker string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		wl := s.workloadOf(g, obj)
		g.Expect(wl.Status.ClusterName).NotTo(BeNil(), "clusterName; %v", messagesOf(wl))
		worker = *wl.Status.ClusterName
	}).Should(Succeed(), "%s %s should get a worker", obj.GetKind(), obj.GetName())
	return worker
}

// awaitPods waits until a worker has n ready pods of these names, and the manager shows them.
func (s *site) awaitPods(worker, prefix string, n int) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		s.expectPodsMirrored(g, worker, prefix, n)
		for _, p := range s.podsNamed(g, "manager", prefix) {
			g.Expect(podReady(p)).To(BeTrue(), "%s is ready: %v", p.Name, p.Status)
		}
	}).Should(Succeed(), "%d pods %s on %s", n, prefix, worker)
}

// uids are the UIDs of the pods of these names on a cluster.
func (s *site) uids(g Gomega, cluster, prefix string) map[string]types.UID {
	uids := map[string]types.UID{}
	for _, p := range s.podsNamed(g, cluster, prefix) {
		uids[p.Name] = p.UID
	}
	return uids
}

// crash lets a container of a worker's pod be not ready, as one that restarts is; heal undoes it.
func (s *site) crash(worker, pod string) { s.setReady(worker, pod, corev1.ConditionFalse) }
func (s *site) heal(worker, pod string)  { s.setReady(worker, pod, corev1.ConditionTrue) }

func (s *site) setReady(worker, pod string, ready corev1.ConditionStatus) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		p := s.pod(g, worker, pod)
		g.Expect(p).NotTo(BeNil())
		for i, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
				p.Status.Conditions[i].Status = ready
			}
		}
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].Ready = ready == corev1.ConditionTrue
			p.Status.ContainerStatuses[i].RestartCount = 1
		}
		g.Expect(on(worker).Status().Update(s.ctx, p)).To(Succeed())
	}).Should(Succeed())
}

// number reads an integer of an object's status; 0 when it is not there.
func number(obj *unstructured.Unstructured, path ...string) int64 {
	if obj == nil {
		return 0
	}
	n, _, _ := unstructured.NestedInt64(obj.Object, append([]string{"status"}, path...)...)
	return n
}
