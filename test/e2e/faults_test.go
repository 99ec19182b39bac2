package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/process"
	"ferry.dev/ferry/test/fixtures"
)

// The tests of this file disturb workers or Ferry, so they run alone: Go runs all tests without t.Parallel first.

// whole mends all connections and processes that a test may have disturbed, and waits until Ferry is connected.
func (s *site) whole() {
	for _, w := range fleet.Workers() {
		if err := fleet.Link(w.Name).Pass(); err != nil {
			s.t.Errorf("mend the link to %s: %v", w.Name, err)
		}
		if c := w.Component("kube-apiserver"); c.State() == process.Paused {
			if err := c.Resume(); err != nil {
				s.t.Errorf("resume: %v", err)
			}
		}
	}
	for _, w := range fleet.Workers() {
		s.awaitClusterActive(w.Name, metav1.ConditionTrue, "Active", "Connected")
	}
}

// alone is newSite for a test that disturbs the fleet.
func alone(t *testing.T, options ...fixtures.QueueOption) *site {
	t.Helper()
	s := newSite(t, options...)
	t.Cleanup(s.whole)
	return s
}

func TestShortLossOfAWorkerEvictsNothing(t *testing.T) {
	s := alone(t)
	s.submit("train", fixtures.RunsOn())
	worker, uid := s.awaitRunning("train")
	s.Expect(fleet.Link(worker).Cut()).To(Succeed())
	s.awaitClusterActive(worker, metav1.ConditionFalse, "ClientConnectionFailed", "Cannot talk to https://")
	s.Expect(fleet.Link(worker).Pass()).To(Succeed())
	s.awaitEvent(metav1.NamespaceDefault, "ClientConnectionFailed", "Cannot talk to https://")
	s.awaitClusterActive(worker, metav1.ConditionTrue, "Active", "Connected")
	s.Consistently(func(g Gomega) {
		g.Expect(meta.FindStatusCondition(s.workload(g, "train").Status.Conditions, kueue.WorkloadEvicted)).To(BeNil())
		g.Expect(s.job(g, worker, "train")).To(HaveValue(HaveField("UID", uid)))
	}).Should(Succeed())
	s.expectCreatedOnce("train")
}

func TestLostWorkerLosesItsJobAndItsStaleCopyOnReturn(t *testing.T) {
	s := alone(t)
	s.submit("train", fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	s.Expect(fleet.Link(worker).BlackHole()).To(Succeed())
	s.awaitClusterActive(worker, metav1.ConditionFalse, "ClientConnectionFailed", "does not answer")
	s.awaitEvent(s.namespace, "MultiKueue", `worker "`+worker+`" was out of reach for too long`)
	uid := s.awaitRunningOn(other(worker), "train")
	s.Expect(s.copies(s, worker)).NotTo(BeEmpty(), "nobody could remove the copy there")
	s.Expect(fleet.Link(worker).Pass()).To(Succeed())
	s.awaitNothingOn(worker)
	s.Expect(s.job(s, other(worker), "train")).To(HaveValue(HaveField("UID", uid)), "the new copy goes on")
}

func TestJobMadeAnewWhileItsWorkerWasAway(t *testing.T) {
	s := alone(t)
	first := s.submit("train", fixtures.RunsOn())
	worker, oldCopy := s.awaitRunning("train")
	s.Expect(fleet.Link(worker).Cut()).To(Succeed())
	s.awaitClusterActive(worker, metav1.ConditionFalse, "ClientConnectionFailed", "")
	s.Expect(manager().Delete(s.ctx, first, background)).To(Succeed())
	s.Eventually(func(g Gomega) { g.Expect(s.job(g, "manager", "train")).To(BeNil()) }).Should(Succeed())
	second := s.submit("train", fixtures.RunsOn())
	uid := s.awaitRunningOn(other(worker), "train")
	s.Expect(s.job(s, worker, "train")).To(HaveValue(HaveField("UID", oldCopy)))
	s.Expect(fleet.Link(worker).Pass()).To(Succeed())
	s.awaitNothingOn(worker)
	s.Expect(s.job(s, other(worker), "train")).To(HaveValue(And(HaveField("UID", uid),
		HaveField("Annotations", HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, string(second.UID))))))
}

func TestStuckWorkerHoldsUpNobody(t *testing.T) {
	s := alone(t)
	stuck := fleet.Worker("w1").Component("kube-apiserver")
	s.Expect(stuck.Pause()).To(Succeed())
	jobs := numbered("train", 5)
	began := time.Now()
	for _, name := range jobs {
		s.submit(name, fixtures.RunsFor(time.Second))
	}
	for _, name := range jobs {
		s.awaitComplete(name)
	}
	t.Logf("5 jobs of one second finished within %s while w1 was stuck", time.Since(began).Round(time.Millisecond))
	s.awaitClusterActive("w1", metav1.ConditionFalse, "ClientConnectionFailed", "does not answer")
	s.Expect(stuck.Resume()).To(Succeed())
	s.awaitClusterActive("w1", metav1.ConditionTrue, "Active", "Connected")
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce(jobs...)
}
