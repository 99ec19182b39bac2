package e2e_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/fixtures"
)

// Kueue's names on the pods of a group.
const (
	groupKey      = "kueue.x-k8s.io/pod-group-name"
	groupCount    = "kueue.x-k8s.io/pod-group-total-count"
	fastAdmission = "kueue.x-k8s.io/pod-group-fast-admission"
)

func (s *site) submitPod(name string, options ...podOption) *corev1.Pod {
	s.t.Helper()
	pod := s.podOf(name, options...)
	s.Expect(manager().Create(s.ctx, pod)).To(Succeed(), name)
	expectGated(s, pod)
	return pod
}

// awaitPodRuns waits until a pod runs on a worker and the manager shows it whole.
func (s *site) awaitPodRuns(name string) (worker string) {
	s.t.Helper()
	worker = s.awaitWorkerOf(s.named(podGVK, name))
	s.Eventually(func(g Gomega) {
		here, there := s.pod(g, "manager", name), s.pod(g, worker, name)
		expectSameStatus(g, here, there)
		g.Expect(here.Status.Phase).To(Equal(corev1.PodRunning))
		g.Expect(there.Status.PodIP).NotTo(BeEmpty(), "the address on %s", worker)
		g.Expect(here.Status.ContainerStatuses).To(HaveLen(1))
	}).Should(Succeed(), "%s should run", name)
	s.Expect(s.pod(s, other(worker), name)).To(Or(BeNil(), HaveField("Labels", Not(HaveKey(kueue.MultiKueueOriginLabel)))), "on the other worker")
	return worker
}

// awaitPodEnded waits for the pod's end on the manager, and until nothing of it is on workers.
func (s *site) awaitPodEnded(name string, phase corev1.PodPhase, reason string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		here := s.pod(g, "manager", name)
		g.Expect(here).NotTo(BeNil())
		expectGated(g, here)
		g.Expect(here.Status.Phase).To(Equal(phase))
		g.Expect(here.Status.ContainerStatuses).To(ContainElement(HaveField("State.Terminated", Not(BeNil()))))
		wl := s.workloadOf(g, s.named(podGVK, name))
		g.Expect(meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished)).To(HaveValue(HaveField("Reason", reason)))
		for _, w := range s.workers {
			g.Expect(s.pod(g, w, name)).To(BeNil(), "on %s", w)
			g.Expect(s.workloads(g, w)).NotTo(ContainElement(HaveField("Name", wl.Name)), "on %s", w)
		}
	}).Should(Succeed(), "%s should end", name)
}

func TestPods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	foreign := s.podOf("taken", func(p *corev1.Pod) { p.Labels = nil })
	s.Expect(on("w1").Create(s.ctx, foreign)).To(Succeed())

	s.submitPod("brief", podRuns(4*time.Second))
	s.submitPod("broken", podRuns(time.Second), podFails)
	s.submitPod("picky", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"no": "node"} })
	s.submitPod("taken")
	first := s.submitPod("train")

	s.awaitPodRuns("brief")
	s.awaitPodEnded("brief", corev1.PodSucceeded, kueue.WorkloadFinishedReasonSucceeded)
	s.awaitPodEnded("broken", corev1.PodFailed, kueue.WorkloadFinishedReasonFailed)
	s.Expect(s.awaitPodRuns("taken")).To(Equal("w2"))
	s.Expect(s.pod(s, "w1", "taken")).To(HaveField("UID", foreign.UID), "somebody else's pod")
	s.expectGatedWhileUnschedulable("picky")

	worker := s.awaitPodRuns("train")
	s.Expect(manager().Delete(s.ctx, first)).To(Succeed())
	s.Eventually(func(g Gomega) {
		g.Expect(s.pod(g, "manager", "train")).To(BeNil())
		g.Expect(s.pod(g, worker, "train")).To(BeNil())
	}).Should(Succeed(), "the deleted pod should go")
	second := s.submitPod("train")
	worker = s.awaitPodRuns("train")
	s.Expect(s.pod(s, worker, "train").Annotations).To(HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, string(second.UID)))

	s.Expect(manager().DeleteAllOf(s.ctx, &corev1.Pod{}, client.InNamespace(s.namespace))).To(Succeed())
	s.awaitOnlyForeignPods(foreign)
}

// expectGatedWhileUnschedulable: to the manager's autoscaler the pod is gated, never unschedulable.
func (s *site) expectGatedWhileUnschedulable(name string) {
	s.t.Helper()
	worker := s.awaitWorkerOf(s.named(podGVK, name))
	s.Eventually(func(g Gomega) {
		there := s.pod(g, worker, name)
		g.Expect(there).NotTo(BeNil())
		g.Expect(podCondition(there, corev1.PodScheduled).Reason).To(Equal(corev1.PodReasonUnschedulable))
	}).Should(Succeed())
	s.Consistently(func(g Gomega) {
		here := s.pod(g, "manager", name)
		expectGated(g, here)
		g.Expect(here.Status.Phase).To(Equal(corev1.PodPending))
		scheduled := podCondition(here, corev1.PodScheduled)
		g.Expect(scheduled.Status).To(Equal(corev1.ConditionFalse))
		g.Expect(scheduled.Reason).To(Equal(corev1.PodReasonSchedulingGated))
	}).Should(Succeed())
}

func (s *site) awaitOnlyForeignPods(foreign *corev1.Pod) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(s.podList(g, "manager")).To(BeEmpty())
		g.Expect(s.podList(g, "w1")).To(ConsistOf(HaveField("UID", foreign.UID)))
		g.Expect(s.podList(g, "w2")).To(BeEmpty())
		for _, w := range s.workers {
			g.Expect(s.workloads(g, w)).To(BeEmpty(), "Workloads on %s", w)
		}
	}).Should(Succeed(), "nothing should be left")
}

func TestPodGateIsForOurQueuesOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addQueueWithoutCheck("plain")
	for name, c := range map[string]struct {
		queue string
		gates []string
	}{
		"ours":          {fixtures.Queue, []string{kinds.KueueGate, kinds.Gate}},
		"plain-queue":   {"plain", []string{kinds.KueueGate}},
		"no-such-queue": {"nowhere", []string{kinds.KueueGate}},
		"without-queue": {"", nil},
	} {
		pod := s.podOf(name, podLabel(fixtures.QueueLabel, c.queue))
		if c.queue == "" {
			pod.Labels = nil
		}
		s.Expect(manager().Create(s.ctx, pod, client.DryRunAll)).To(Succeed(), name)
		var gates []string
		for _, gate := range pod.Spec.SchedulingGates {
			if gate.Name == kinds.KueueGate || gate.Name == kinds.Gate {
				gates = append(gates, gate.Name)
			}
		}
		s.Expect(gates).To(Equal(c.gates), name)
	}
}

// group is a pod group by name: its count, and how its pods name it.
type group struct {
	name, prefix string
	in           []podOption
}

func labelled(name, count string) group {
	return group{name, name, []podOption{podLabel(groupKey, name), podAnnotation(groupCount, count)}}
}

func (g group) with(more ...podOption) []podOption {
	return append(g.in[:len(g.in):len(g.in)], more...)
}

func (s *site) submitMember(g group, role string, more ...podOption) *corev1.Pod {
	s.t.Helper()
	return s.submitPod(g.prefix+"-"+role, g.with(more...)...)
}

// awaitGroup waits until the group's Workload has a worker, and n members run there.
func (s *site) awaitGroup(g group, n int) (worker string) {
	s.t.Helper()
	s.Eventually(func(a Gomega) {
		wl := s.groupWorkload(a, g)
		a.Expect(wl.Status.ClusterName).NotTo(BeNil(), "clusterName; %v", messagesOf(wl))
		worker = *wl.Status.ClusterName
		s.expectPodsMirrored(a, worker, g.prefix, n)
		for _, p := range s.podsNamed(a, "manager", g.prefix) {
			a.Expect(p.Status.Phase).NotTo(Equal(corev1.PodPending), p.Name)
		}
	}).Should(Succeed(), "%d pods of group %s should run", n, g.name)
	return worker
}

func (s *site) groupWorkload(a Gomega, g group) *kueue.Workload {
	wl := &kueue.Workload{}
	a.Expect(manager().Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: g.name}, wl)).To(Succeed(), "the group's Workload")
	return wl
}

func (s *site) awaitGroupOver(g group, reason string, phases ...corev1.PodPhase) {
	s.t.Helper()
	s.Eventually(func(a Gomega) {
		finished := meta.FindStatusCondition(s.groupWorkload(a, g).Status.Conditions, kueue.WorkloadFinished)
		a.Expect(finished).To(HaveValue(HaveField("Reason", reason)))
		var is []corev1.PodPhase
		for _, p := range s.podsNamed(a, "manager", g.prefix) {
			expectGated(a, &p)
			is = append(is, p.Status.Phase)
		}
		a.Expect(is).To(ConsistOf(phases))
		for _, w := range s.workers {
			a.Expect(s.podsNamed(a, w, g.prefix)).To(BeEmpty(), "on %s", w)
			a.Expect(s.workloads(a, w)).NotTo(ContainElement(HaveField("Name", g.name)), "on %s", w)
		}
	}).Should(Succeed(), "group %s should end", g.name)
}

func TestPodGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	plain := labelled("plain", "2")
	long := group{strings.Repeat("long-", 14) + "name", "long", nil} // 74 characters: too many for a label's value
	long.in = []podOption{podAnnotation(groupKey, long.name), podAnnotation(groupCount, "2")}
	fast := labelled("fast", "2")
	fast.in = append(fast.in, podAnnotation(fastAdmission, "true"))

	for _, g := range []group{plain, long} {
		s.submitMember(g, "driver", podRuns(12*time.Second))
		s.submitMember(g, "executor", podRuns(12*time.Second))
	}
	s.submitMember(fast, "driver")
	for _, g := range []group{plain, long} {
		s.awaitGroup(g, 2)
	}
	for _, g := range []group{plain, long} {
		s.awaitGroupOver(g, kueue.WorkloadFinishedReasonSucceeded, corev1.PodSucceeded, corev1.PodSucceeded)
	}

	worker := s.awaitGroup(fast, 1)
	executor := s.submitMember(fast, "executor")
	s.Expect(s.awaitGroup(fast, 2)).To(Equal(worker))
	s.Expect(manager().Delete(s.ctx, executor)).To(Succeed())
	s.Expect(manager().Delete(s.ctx, s.named(podGVK, "fast-driver"))).To(Succeed())
	s.awaitNothingLeft(s.named(podGVK, ""))
	// On the manager Kueue would hold them, as others might join.
	s.Eventually(func(g Gomega) {
		g.Expect(s.podsNamed(g, "manager", fast.prefix)).To(BeEmpty())
	}).Should(Succeed())
}

// Kueue lets another pod of the group take the place of one that failed.
func TestReplacedPodJoinsItsGroup(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	pair := labelled("pair", "2")
	s.submitMember(pair, "driver", podRuns(20*time.Second))
	s.submitMember(pair, "executor", podRuns(time.Second), podFails)
	var worker string
	s.Eventually(func(g Gomega) {
		wl := s.groupWorkload(g, pair)
		g.Expect(wl.Status.ClusterName).NotTo(BeNil(), "clusterName; %v", messagesOf(wl))
		worker = *wl.Status.ClusterName
		g.Expect(s.pod(g, "manager", "pair-executor").Status.Phase).To(Equal(corev1.PodFailed))
		expectSameStatus(g, s.pod(g, "manager", "pair-driver"), s.pod(g, worker, "pair-driver"))
	}).Should(Succeed())
	before := s.uids(s, worker, "pair-driver")

	s.submitMember(pair, "replacement", podRuns(2*time.Second))
	s.Eventually(func(g Gomega) {
		expectSameStatus(g, s.pod(g, "manager", "pair-replacement"), s.pod(g, worker, "pair-replacement"))
	}).WithPolling(20*time.Millisecond).Should(Succeed(), "the replacement should run on %s", worker)
	s.Expect(s.uids(s, worker, "pair-driver")).To(Equal(before), "the other one runs on")
	s.awaitGroupOver(pair, kueue.WorkloadFinishedReasonSucceeded, corev1.PodSucceeded, corev1.PodSucceeded, corev1.PodFailed)
}

// Kueue deletes the pods of a group that it evicts. Those that come in their place run on another worker, and nothing
// of the first ones stays on theirs.
func TestEvictedGroupRunsElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	first := labelled("pair", "2")
	s.submitMember(first, "driver")
	s.submitMember(first, "executor")
	worker := s.awaitGroup(first, 2)

	s.setStopPolicy(worker, kueue.HoldAndDrain)
	s.Eventually(func(g Gomega) {
		g.Expect(s.podList(g, worker)).To(BeEmpty())
		g.Expect(s.workloads(g, worker)).To(BeEmpty())
		for _, p := range s.podList(g, "manager") {
			g.Expect(p.DeletionTimestamp).NotTo(BeNil(), "%s, as Kueue stopped it", p.Name)
		}
	}).Should(Succeed(), "nothing should stay on %s", worker)
	next := first
	next.prefix = "next"
	s.submitMember(next, "driver")
	s.submitMember(next, "executor")
	s.Expect(s.awaitGroup(next, 2)).To(Equal(other(worker)))
}

// Kueue on the worker counts a pod until its node says that it has ended, and would take the one in its place for one too many.
func TestReplacementWaitsForThePodThatGoes(t *testing.T) {
	s := alone(t)
	s.leavePods()
	pair := labelled("pair", "2")
	s.submitMember(pair, "driver")
	s.submitMember(pair, "executor")
	worker := s.awaitGroup(pair, 2)
	driver := s.uids(s, worker, "pair-driver")

	nodes := fleet.Worker(worker).Component("kwok")
	s.Expect(nodes.Pause()).To(Succeed())
	t.Cleanup(func() { _ = nodes.Resume() })
	s.Expect(manager().Delete(s.ctx, s.named(podGVK, "pair-executor"))).To(Succeed())
	s.Eventually(func(g Gomega) {
		g.Expect(s.pod(g, worker, "pair-executor").DeletionTimestamp).NotTo(BeNil())
	}).Should(Succeed())
	s.submitMember(pair, "next")
	calm := func(g Gomega) {
		g.Expect(meta.FindStatusCondition(s.groupWorkload(g, pair).Status.Conditions, kueue.WorkloadEvicted)).To(BeNil())
		g.Expect(s.uids(g, worker, "pair-driver")).To(Equal(driver), "the other one runs on")
	}
	s.Consistently(calm, 5*time.Second).Should(Succeed())
	s.Expect(s.pod(s, worker, "pair-next")).To(BeNil(), "on %s, while the other goes", worker)

	s.Expect(nodes.Resume()).To(Succeed())
	s.Eventually(func(g Gomega) {
		next := s.pod(g, worker, "pair-next")
		expectSameStatus(g, s.pod(g, "manager", "pair-next"), next)
		g.Expect(next.Status.Phase).To(Equal(corev1.PodRunning))
	}).Should(Succeed(), "it runs once the other has ended")
	calm(s)
	s.awaitNamespaceEnds()
}

// A namespace that is being deleted deletes its pods first, and all else only once these are gone.
func TestNamespaceEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.WorkerCPU("16"))
	s.submit("job")
	s.submitPod("alone")
	running, waiting := labelled("running", "2"), labelled("waiting", "2")
	s.submitMember(running, "driver")
	s.submitMember(running, "executor")
	s.submitMember(waiting, "driver")
	deployment, set := s.create("manager", s.sample("deployment")), s.create("manager", s.sample("statefulset"))
	s.awaitGroup(running, 2)
	s.awaitPodRuns("alone")
	s.theWorkerOf(deployment.GetName(), 3)
	s.theWorkerOf(set.GetName(), 3)
	s.awaitNamespaceEnds()
}

// awaitNamespaceEnds deletes the site's namespace on the manager, and waits until nothing is left of it, nor on workers.
func (s *site) awaitNamespaceEnds() {
	s.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.Expect(manager().Delete(s.ctx, namespace)).To(Succeed())
	s.Eventually(func(g Gomega) {
		err := manager().Get(s.ctx, client.ObjectKeyFromObject(namespace), namespace)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v, %v", err, namespace.Status.Conditions)
		for _, w := range s.workers {
			g.Expect(s.podList(g, w)).To(BeEmpty(), "on %s", w)
			g.Expect(s.workloads(g, w)).To(BeEmpty(), "on %s", w)
		}
	}).Should(Succeed(), "the deletion of a namespace ends")
}
