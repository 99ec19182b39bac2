package e2e_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// setReplicas scales an object of the manager.
func (s *site) setReplicas(obj *unstructured.Unstructured, n int64) {
	s.t.Helper()
	update(s, "manager", obj, func(o *unstructured.Unstructured) {
		s.Expect(unstructured.SetNestedField(o.Object, n, "spec", "replicas")).To(Succeed())
	})
}

// setImage changes the image in a pod template of an object of the manager.
func (s *site) setImage(obj *unstructured.Unstructured, image string, template ...string) {
	s.t.Helper()
	update(s, "manager", obj, func(o *unstructured.Unstructured) {
		path := append(template[:len(template):len(template)], "spec", "containers")
		containers, _, _ := unstructured.NestedSlice(o.Object, path...)
		containers[0].(map[string]any)["image"] = image
		s.Expect(unstructured.SetNestedSlice(o.Object, containers, path...)).To(Succeed())
	})
}

// awaitReady waits until n pods of the object run on the worker, and the manager's object says so in these fields.
func (s *site) awaitReady(obj *unstructured.Unstructured, worker string, n int, fields ...string) {
	s.t.Helper()
	s.awaitPods(worker, obj.GetName(), n)
	s.awaitCounts(obj, int64(n), fields...)
}

func (s *site) awaitCounts(obj *unstructured.Unstructured, n int64, fields ...string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		now := s.read(g, "manager", obj)
		g.Expect(now).NotTo(BeNil())
		g.Expect(number(now, "observedGeneration")).To(Equal(now.GetGeneration()))
		for _, field := range fields {
			g.Expect(number(now, field)).To(Equal(n), "%s in the manager's status %v", field, now.Object["status"])
		}
	}).Should(Succeed(), "%s %s should show %d", obj.GetKind(), obj.GetName(), n)
}

// awaitImage waits until all pods of an object have an image, on its worker and on the manager.
func (s *site) awaitImage(obj *unstructured.Unstructured, worker, image string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, cluster := range []string{"manager", worker} {
			for _, p := range s.podsNamed(g, cluster, obj.GetName()) {
				g.Expect(p.Spec.Containers[0].Image).To(Equal(image), "%s on %s", p.Name, cluster)
				g.Expect(p.Status.ContainerStatuses).To(ContainElement(HaveField("Image", image)), "%s on %s", p.Name, cluster)
			}
		}
	}).Should(Succeed(), "%s should roll out", obj.GetName())
}

// expectImage: now that the manager says that the rollout is done, it is.
func (s *site) expectImage(obj *unstructured.Unstructured, worker, image string) {
	s.t.Helper()
	for _, p := range s.podsNamed(s, worker, obj.GetName()) {
		s.Expect(p.Spec.Containers[0].Image).To(Equal(image), "%s on %s, now that the manager says that it is done", p.Name, worker)
	}
}

// awaitGone deletes an object on the manager, and waits until nothing of it is anywhere.
func (s *site) awaitGone(obj *unstructured.Unstructured) {
	s.t.Helper()
	s.Expect(manager().Delete(s.ctx, obj.DeepCopy(), background)).To(Succeed())
	s.awaitNothingLeft(obj)
	s.Eventually(func(g Gomega) {
		g.Expect(s.read(g, "manager", obj)).To(BeNil())
		g.Expect(s.pods(g, "manager")).To(BeEmpty(), "pods on the manager")
		g.Expect(s.workloads(g, "manager")).To(BeEmpty(), "Workloads on the manager")
	}).Should(Succeed(), "%s should go", obj.GetName())
}

const setIsReady = "readyReplicas"

func TestStatefulSet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	set := s.create("manager", s.sample("statefulset"))
	worker := s.awaitWorkerOf(set)
	s.awaitReady(set, worker, 3, "replicas", setIsReady, "availableReplicas")
	s.expectOrderedStart(set.GetName(), 3)

	s.crash(worker, "statefulset-1")
	s.awaitCounts(set, 2, setIsReady, "availableReplicas")
	s.heal(worker, "statefulset-1")
	s.awaitReady(set, worker, 3, setIsReady)
	s.replacePod(set, worker, "statefulset-1")
	s.awaitReady(set, worker, 3, setIsReady)

	s.setImage(set, "nginx:1.30", "spec", "template")
	s.awaitCounts(set, 3, setIsReady, "updatedReplicas", "currentReplicas")
	s.expectImage(set, worker, "nginx:1.30")
	s.awaitImage(set, worker, "nginx:1.30")

	s.setReplicas(set, 0)
	s.awaitCounts(set, 0, "replicas", setIsReady)
	s.Eventually(func(g Gomega) {
		for _, cluster := range append([]string{"manager"}, s.workers...) {
			g.Expect(s.pods(g, cluster)).To(BeEmpty(), "pods on %s", cluster)
		}
	}).Should(Succeed(), "scaled to zero")
	s.scaleFromZero(set, 3)
	s.awaitReady(set, s.theWorkerOf(set.GetName(), 3), 3, setIsReady)
	s.awaitGone(set)
}

// expectOrderedStart: on the manager, too, each pod was made after the one before it was ready.
func (s *site) expectOrderedStart(name string, n int) {
	s.t.Helper()
	for i := 1; i < n; i++ {
		before, p := s.pod(s, "manager", fmt.Sprintf("%s-%d", name, i-1)), s.pod(s, "manager", fmt.Sprintf("%s-%d", name, i))
		ready := podCondition(before, corev1.PodReady).LastTransitionTime
		s.Expect(p.CreationTimestamp.Before(&ready)).To(BeFalse(), "%s came at %s, %s was ready at %s", p.Name, p.CreationTimestamp, before.Name, ready)
	}
}

// replacePod deletes a pod on the worker, and waits until its successor is what the manager shows.
func (s *site) replacePod(set *unstructured.Unstructured, worker, name string) {
	s.t.Helper()
	old := s.pod(s, worker, name)
	s.Expect(on(worker).Delete(s.ctx, old.DeepCopy())).To(Succeed())
	s.Eventually(func(g Gomega) {
		there := s.pod(g, worker, name)
		g.Expect(there).NotTo(BeNil())
		g.Expect(there.UID).NotTo(Equal(old.UID))
		expectSameStatus(g, s.pod(g, "manager", name), there)
	}).Should(Succeed(), "%s of %s should be made anew", name, set.GetName())
}

// scaleFromZero: Kueue refuses as long as the last pods are on their way out.
func (s *site) scaleFromZero(set *unstructured.Unstructured, n int64) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		now := s.read(g, "manager", set)
		g.Expect(unstructured.SetNestedField(now.Object, n, "spec", "replicas")).To(Succeed())
		g.Expect(manager().Update(s.ctx, now)).To(Succeed())
	}).Should(Succeed())
}

// TestStatefulSetMoves: a worker gives up its quota, and so the set, without any replicas in its spec, runs on the other.
func TestStatefulSetMoves(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	set := s.sample("statefulset")
	unstructured.RemoveNestedField(set.Object, "spec", "replicas")
	set = s.create("manager", set)
	worker := s.awaitWorkerOf(set)
	s.awaitReady(set, worker, 1, setIsReady)

	s.setStopPolicy(worker, kueue.HoldAndDrain)
	s.Eventually(func(g Gomega) {
		g.Expect(s.workloadOf(g, set).Status.ClusterName).To(HaveValue(Equal(other(worker))))
		g.Expect(s.pods(g, worker)).To(BeEmpty(), "pods on %s", worker)
		g.Expect(s.workloads(g, worker)).To(BeEmpty(), "Workloads on %s", worker)
		g.Expect(s.read(g, worker, set)).To(BeNil())
	}).Should(Succeed(), "the set should move")
	s.awaitReady(set, other(worker), 1, setIsReady)
	s.awaitGone(set)
}

// TestLeaderWorkerSet runs alone: its operator starts for it.
func TestLeaderWorkerSet(t *testing.T) {
	startOperator(t, "lws")
	t.Run("scales", func(t *testing.T) {
		t.Parallel()
		s, set, worker := newLeaderWorkerSet(t)
		before := s.uids(s, worker, set.GetName())
		s.setReplicas(set, 3)
		s.awaitReady(set, worker, 6)
		s.awaitCounts(set, 3, "replicas", setIsReady)
		s.expectWorkloads(set, worker, 3)
		s.expectRunOn(before, worker, set.GetName())

		first := s.uids(s, worker, set.GetName()+"-0")
		s.setReplicas(set, 1)
		s.awaitReady(set, worker, 2)
		s.awaitCounts(set, 1, "replicas", setIsReady)
		s.expectWorkloads(set, worker, 1)
		s.expectRunOn(first, worker, set.GetName())
		s.awaitGone(set)
	})
	t.Run("rolls out", func(t *testing.T) {
		t.Parallel()
		rollsOut(t)
	})
	t.Run("in racks", func(t *testing.T) {
		t.Parallel()
		inRacks("leaderworkerset", "spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate")(t)
	})
	t.Run("gets another priority", func(t *testing.T) {
		t.Parallel()
		s, set, worker := newLeaderWorkerSet(t, func(s *site, set *unstructured.Unstructured) {
			setLabel(set, fixtures.PriorityLabel, s.priorityClass("low", 1, "manager", "w1", "w2"))
		})
		s.awaitOwnedBySet(set, worker)
		high := s.priorityClass("high", 1000, "manager")
		s.Expect(on(worker).Create(s.ctx, fixtures.PriorityClass(high, 5))).To(Succeed())
		update(s, "manager", set, func(o *unstructured.Unstructured) { setLabel(o, fixtures.PriorityLabel, high) })
		hasPriority := func(g Gomega) {
			for _, wl := range s.workloads(g, worker) {
				g.Expect(wl.Spec.Priority).To(HaveValue(BeEquivalentTo(1000)), "the manager's, not what the class is worth on the worker")
			}
		}
		s.Eventually(hasPriority).Should(Succeed())
		s.setClass(worker, high, 7)
		s.setReplicas(set, 3)
		s.awaitCounts(set, 3, setIsReady)
		s.Consistently(hasPriority).Should(Succeed())
		s.awaitGone(set)
	})
	t.Run("restarts a replica", func(t *testing.T) {
		t.Parallel()
		s, set, worker := newLeaderWorkerSet(t)
		offers := s.awaitOwnedBySet(set, worker)
		other := s.uids(s, worker, set.GetName()+"-1")
		s.replacePod(set, worker, set.GetName()+"-0")
		s.awaitReady(set, worker, 4)
		s.awaitCounts(set, 2, "replicas", setIsReady)
		s.Expect(s.awaitOwnedBySet(set, worker)).To(Equal(offers), "no Workload goes with the pods of its replica")
		s.expectRunOn(other, worker, set.GetName())
		s.awaitGone(set)
	})
}

// newLeaderWorkerSet has two replicas of two pods each, all ready on one worker.
func newLeaderWorkerSet(t *testing.T, with ...func(*site, *unstructured.Unstructured)) (s *site, set *unstructured.Unstructured, worker string) {
	s = newSite(t)
	set = s.sample("leaderworkerset")
	for _, change := range with {
		change(s, set)
	}
	s.leaveKind(set)
	set = s.create("manager", set)
	worker = s.awaitWorkerOf(set)
	s.awaitReady(set, worker, 4)
	s.awaitCounts(set, 2, "replicas", setIsReady)
	s.expectWorkloads(set, worker, 2)
	return s, set, worker
}

// rollsOut: the manager says that it is done when it is on the worker, and no Workload is evicted or made anew.
func rollsOut(t *testing.T) {
	s, set, worker := newLeaderWorkerSet(t)
	offers := s.awaitOwnedBySet(set, worker)
	s.setImage(set, "nginx:1.30", "spec", "leaderWorkerTemplate", "leaderTemplate")
	s.setImage(set, "nginx:1.30", "spec", "leaderWorkerTemplate", "workerTemplate")
	s.awaitCounts(set, 2, "replicas", setIsReady, "updatedReplicas")
	s.expectImage(set, worker, "nginx:1.30")
	s.awaitReady(set, worker, 4)
	s.awaitImage(set, worker, "nginx:1.30")
	s.expectWorkloads(set, worker, 2)
	s.Expect(s.awaitOwnedBySet(set, worker)).To(ConsistOf(offers), "no Workload goes with the pods that are replaced")
	s.awaitGone(set)
}

func setLabel(obj *unstructured.Unstructured, label, value string) {
	labels := obj.GetLabels()
	labels[label] = value
	obj.SetLabels(labels)
}

// awaitOwnedBySet waits until the copies of the set's Workloads cannot go before it does, and tells which these are.
func (s *site) awaitOwnedBySet(set *unstructured.Unstructured, worker string) (copies []types.UID) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		there := s.read(g, worker, set)
		g.Expect(there).NotTo(BeNil())
		copies = nil
		for _, c := range s.workloads(g, worker) {
			g.Expect(c.OwnerReferences).To(ContainElement(HaveField("UID", there.GetUID())), "owners of %s", c.Name)
			copies = append(copies, c.UID)
		}
		g.Expect(copies).NotTo(BeEmpty())
	}).Should(Succeed(), "%s on %s should own its Workloads", set.GetName(), worker)
	return copies
}

// expectRunOn: the pods that ran before still do.
func (s *site) expectRunOn(before map[string]types.UID, worker, prefix string) {
	s.t.Helper()
	after := s.uids(s, worker, prefix)
	for name, uid := range before {
		s.Expect(after).To(HaveKeyWithValue(name, uid), "not restarted")
	}
}

// expectWorkloads: each of the n Workloads of a set is admitted, and all are on one worker.
func (s *site) expectWorkloads(set *unstructured.Unstructured, worker string, n int) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		here, there := s.workloads(g, "manager"), s.workloads(g, worker)
		g.Expect(here).To(HaveLen(n), "Workloads of %s on the manager", set.GetName())
		g.Expect(there).To(HaveLen(n), "Workloads of %s on %s", set.GetName(), worker)
		for _, wl := range here {
			g.Expect(wl.Status.ClusterName).To(HaveValue(Equal(worker)))
			g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)).To(BeTrue(), "%s is admitted", wl.Name)
		}
		g.Expect(s.workloads(g, other(worker))).To(BeEmpty())
	}).WithTimeout(30 * time.Second).Should(Succeed())
}
