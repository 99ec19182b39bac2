package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// TestDeletedClusterIsWithdrawnFromFirst: the cluster that runs a job is deleted while Ferry is down. Once it is up
// again, the job stops there, and only then it runs elsewhere and the cluster goes.
func TestDeletedClusterIsWithdrawnFromFirst(t *testing.T) {
	s := alone(t)
	doubles := s.watchForDoubles("train")
	s.submit("train", fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	cluster := s.borrowCluster(worker)
	s.stopFerry()
	s.Expect(manager().Delete(s.ctx, cluster)).To(Succeed())
	s.startFerry()
	s.awaitRunningOn(other(worker), "train")
	s.Eventually(func() bool {
		return apierrors.IsNotFound(manager().Get(s.ctx, client.ObjectKeyFromObject(cluster), cluster))
	}).Should(BeTrue(), "the cluster goes")
	s.awaitNothingOn(worker)
	s.awaitEvent(metav1.NamespaceDefault, "Withdrawn", "Nothing of Ferry's is left")
	s.Expect(doubles()).To(BeEmpty())
}

// borrowCluster is a worker's MultiKueueCluster, which is made again at the end of the test.
func (s *site) borrowCluster(worker string) *kueue.MultiKueueCluster {
	s.t.Helper()
	cluster := &kueue.MultiKueueCluster{}
	s.Expect(manager().Get(s.ctx, client.ObjectKey{Name: worker}, cluster)).To(Succeed())
	s.Expect(cluster.Finalizers).To(ContainElement("ferry.dev/withdraw"))
	again := &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: worker, Labels: cluster.Labels}, Spec: cluster.Spec}
	s.t.Cleanup(func() {
		s.Eventually(func() error { return client.IgnoreAlreadyExists(manager().Create(s.ctx, again.DeepCopy())) }).Should(Succeed())
	})
	return cluster
}

func TestWorkerTakenOutOfTheConfigIsWithdrawnFrom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	doubles := s.watchForDoubles("train")
	s.submit("train", fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	update(s, "manager", &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, func(c *kueue.MultiKueueConfig) {
		c.Spec.Clusters = []string{other(worker)}
	})
	s.awaitRunningOn(other(worker), "train")
	s.awaitNothingOn(worker)
	s.Expect(doubles()).To(BeEmpty())
}

func TestCheckThatLeadsElsewhereIsWithdrawnFrom(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	doubles := s.watchForDoubles("train")
	s.submit("train", fixtures.RunsOn())
	worker, _ := s.awaitRunning("train")
	config := &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-new"}, Spec: kueue.MultiKueueConfigSpec{Clusters: []string{other(worker)}}}
	s.putOn("manager", config)
	update(s, "manager", &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, func(c *kueue.AdmissionCheck) {
		c.Spec.Parameters.Name = config.Name
	})
	s.awaitRunningOn(other(worker), "train")
	s.awaitNothingOn(worker)
	s.Expect(doubles()).To(BeEmpty())
}
