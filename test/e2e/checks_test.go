package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestCheckFollowsItsConfigAndClusters(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	s.Expect(manager().Create(s.ctx, &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: kueue.AdmissionCheckSpec{
			ControllerName: kueue.MultiKueueControllerName,
			Parameters:     &kueue.AdmissionCheckParametersReference{APIGroup: kueue.SchemeGroupVersion.Group, Kind: "MultiKueueConfig", Name: s.namespace},
		},
	})).To(Succeed())
	s.awaitCheck(metav1.ConditionFalse, "BadConfig", s.namespace)

	config := &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: kueue.MultiKueueConfigSpec{Clusters: []string{s.namespace}}}
	s.Expect(manager().Create(s.ctx, config)).To(Succeed())
	s.awaitCheck(metav1.ConditionFalse, "NoUsableClusters", "Missing clusters: ["+s.namespace+"]")

	s.addCluster(s.namespace, kueue.SecretLocationType)
	s.awaitCheck(metav1.ConditionFalse, "NoUsableClusters", "Inactive clusters: ["+s.namespace+"]")

	update(s, "manager", config, func(c *kueue.MultiKueueConfig) { c.Spec.Clusters = []string{"w1", s.namespace} })
	s.awaitCheck(metav1.ConditionTrue, "SomeActiveClusters", "Inactive clusters: ["+s.namespace+"]")

	s.putSecret(s.kubeconfig(s.account("reader"), nil))
	s.awaitCheck(metav1.ConditionTrue, "Active", "The admission check is active")

	s.Expect(manager().Delete(s.ctx, config)).To(Succeed())
	s.awaitCheck(metav1.ConditionFalse, "BadConfig", "not found")
}

// awaitCheck waits for the Active condition of this site's AdmissionCheck.
func (s *site) awaitCheck(status metav1.ConditionStatus, reason, message string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		var check kueue.AdmissionCheck
		g.Expect(manager().Get(s.ctx, client.ObjectKey{Name: s.namespace}, &check)).To(Succeed())
		g.Expect(meta.FindStatusCondition(check.Status.Conditions, kueue.AdmissionCheckActive)).To(HaveValue(And(
			HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
	}).Should(Succeed())
}
