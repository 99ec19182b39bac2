package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// A second MultiKueueCluster for a cluster that is in use already is a mistake,
// but not one that may cost jobs.
func TestTwoNamesOfOneClusterLeaveEachOthersCopiesAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.OnWorkers("w1"))
	twin := &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-twin"}}
	twin.Spec.ClusterSource.KubeConfig = &kueue.KubeConfig{Location: "w1-kubeconfig", LocationType: kueue.SecretLocationType}
	s.Expect(manager().Create(s.ctx, twin)).To(Succeed())
	t.Cleanup(func() { s.Expect(client.IgnoreNotFound(manager().Delete(s.ctx, twin))).To(Succeed()) })
	s.Eventually(func(g Gomega) {
		g.Expect(manager().Get(s.ctx, client.ObjectKeyFromObject(twin), twin)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(twin.Status.Conditions, kueue.MultiKueueClusterActive)).To(BeTrue())
	}).Should(Succeed())
	update(s, "manager", &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, func(c *kueue.MultiKueueConfig) {
		c.Spec.Clusters = []string{twin.Name, "w1"}
	})

	jobs := numbered("train", 4)
	for _, job := range jobs {
		s.submit(job, fixtures.RunsFor(3*time.Second))
	}
	for _, job := range jobs {
		s.awaitComplete(job)
	}
	s.expectCreatedOnce(jobs...)
	s.awaitNothingOn("w1")
}
