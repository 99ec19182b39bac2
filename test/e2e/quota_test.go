package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
	"ferry.dev/ferry/test/fixtures"
)

// TestQuotaFollowsTheWorkers: with quotaManagement Automated the manager's queue has what those of the workers have
// together, as they change, come and go; but an edit of somebody else is left alone.
func TestQuotaFollowsTheWorkers(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.ManagerCPU("1"), fixtures.CPUOf("w1", "3"), fixtures.CPUOf("w2", "4"))
	second := s.addTwin("w2")
	s.setConfig(func(c *kueue.MultiKueueConfig) { c.Spec.Clusters = []string{"w1", second} })
	s.submit("train", fixtures.CPU("3"), fixtures.RunsFor(time.Second))
	s.automate(kueue.QuotaManagementAutomated)
	s.awaitQuota("7", reason.QuotaAutomated)
	s.awaitComplete("train") // which one CPU would not have let begin

	s.setCPU("w1", "5")
	s.awaitQuota("9", reason.QuotaAutomated)
	s.annotateCluster(second, "ferry.dev/cordon", "true")
	s.awaitQuota("5", reason.QuotaAutomated)
	s.annotateCluster(second, "ferry.dev/cordon", "")
	s.awaitQuota("9", reason.QuotaAutomated)

	s.setCPU("manager", "2")
	s.awaitQuota("2", reason.QuotaEdited)
	s.setCPU("w1", "6")
	s.Eventually(func() string { return s.quotaCondition().Message }).Should(ContainSubstring("cpu 10"))
	s.awaitQuota("2", reason.QuotaEdited)
	s.automate(kueue.QuotaManagementManual)
	s.awaitQuota("2", reason.QuotaNotRequested)
	s.automate(kueue.QuotaManagementAutomated)
	s.awaitQuota("10", reason.QuotaAutomated)

	// Flavors of other names mean nothing where there are two to choose from.
	flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-further"}}
	s.putOn("manager", flavor)
	s.setQueue("manager", func(q *kueue.ClusterQueue) {
		further := q.Spec.ResourceGroups[0].Flavors[0].DeepCopy()
		further.Name = kueue.ResourceFlavorReference(flavor.Name)
		q.Spec.ResourceGroups[0].Flavors = append(q.Spec.ResourceGroups[0].Flavors, *further)
	})
	s.Eventually(func() string { return s.quotaCondition().Message }).Should(ContainSubstring("label the worker's ResourceFlavor ferry.dev/manager-flavor=NAME"))
	s.Expect(s.quotaCondition().Reason).To(Equal(reason.QuotaUnsupported))
}

// addTwin makes another MultiKueueCluster for a worker, so that a test may do to it what would disturb the others.
func (s *site) addTwin(worker string) string {
	s.t.Helper()
	s.addCluster(worker+"-kubeconfig", kueue.SecretLocationType)
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
	return s.cluster().Name
}

func (s *site) annotateCluster(name, key, value string) {
	s.t.Helper()
	update(s, "manager", &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(c *kueue.MultiKueueCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value)
	})
}

func (s *site) setConfig(change func(*kueue.MultiKueueConfig)) {
	s.t.Helper()
	update(s, "manager", &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, change)
}

func (s *site) automate(mode kueue.MultiKueueConfigQuotaManagementMode) {
	s.t.Helper()
	s.setConfig(func(c *kueue.MultiKueueConfig) { c.Spec.QuotaManagement = &mode })
}

func (s *site) managerQueue(g Gomega) *kueue.ClusterQueue {
	cq := &kueue.ClusterQueue{}
	g.Expect(manager().Get(s.ctx, client.ObjectKey{Name: s.clusterQueue("manager")}, cq)).To(Succeed())
	return cq
}

func (s *site) quotaCondition() metav1.Condition {
	if c := meta.FindStatusCondition(s.managerQueue(s).Status.Conditions, kueue.MultiKueueManagerQuotaAutomation); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (s *site) awaitQuota(cpu, why string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		cq := s.managerQueue(g)
		c := meta.FindStatusCondition(cq.Status.Conditions, kueue.MultiKueueManagerQuotaAutomation)
		g.Expect(c).To(HaveField("Reason", why))
		for _, quota := range cq.Spec.ResourceGroups[0].Flavors[0].Resources {
			if quota.Name == corev1.ResourceCPU {
				g.Expect(quota.NominalQuota.String()).To(Equal(cpu), "%s", c.Message)
			}
		}
	}).Should(Succeed())
}
