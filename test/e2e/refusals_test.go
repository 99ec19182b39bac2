package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// TestWorkerWhereNothingCanBePlaced: the operator's webhook is down on the one worker that has room, so the job is
// admitted there and never placed. It is told, and after workers.placeTimeout the job goes where it can run.
func TestWorkerWhereNothingCanBePlaced(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.CPUOf("w2", "0"))
	s.putOn("w1", &admissionregistration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Webhooks: []admissionregistration.ValidatingWebhook{{
			Name: "down.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistration.SideEffectClassNone),
			ClientConfig:  admissionregistration.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/down")},
			FailurePolicy: ptr.To(admissionregistration.Fail), TimeoutSeconds: ptr.To(int32(1)),
			NamespaceSelector: s.selector(),
			Rules: []admissionregistration.RuleWithOperations{{
				Operations: []admissionregistration.OperationType{admissionregistration.Create},
				Rule:       admissionregistration.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"}},
			}},
		}},
	})
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitMessage("train", `"w1"`, "down.example.com")
	s.setCPU("w2", "10")
	s.Eventually(func(g Gomega) {
		g.Expect(s.workload(g, "train").Status.ClusterName).To(HaveValue(Equal("w2")))
	}, 3*time.Minute).Should(Succeed(), "the job goes to the other worker")
	s.awaitComplete("train")
	s.Expect(s.creates(s, "train", 201)).To(Equal(map[string]int{"w2": 1}))
	s.awaitNothingOn(s.workers...)
}

// TestWorkerThatRefusesDeletes: a policy keeps the loser's copy there. That is told, holds up nothing else, and is made
// up for once the policy is gone.
func TestWorkerThatRefusesDeletes(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.CPUOf("w1", "0"))
	policy := s.refuseOn("w1", admissionregistration.Delete, "false", "nothing is deleted here")
	s.awaitRefusal()
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitComplete("train")
	s.awaitEvent(s.namespace, "ChangeRefused", "nothing is deleted here")
	s.awaitEvent(metav1.NamespaceDefault, "ChangeRefused", "delete")
	s.Expect(s.creations(s, "train")).To(Equal(map[string]int{"w2": 1}))
	s.awaitNothingOn("w2")
	s.Expect(s.copies(s, "w1")).NotTo(BeEmpty())
	s.Expect(on("w1").Delete(s.ctx, policy)).To(Succeed())
	s.Eventually(func() error { return client.IgnoreNotFound(on("w1").Delete(s.ctx, probe(s.namespace))) }).Should(Succeed())
	s.awaitNothingOn("w1")
}

// TestWorkerThatRefusesEdits: a policy on the job's worker keeps priorities as they are. That is told, the job runs on,
// and the edit is made up for once the policy is gone.
func TestWorkerThatRefusesEdits(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.OnWorkers("w1"))
	low, high := s.priorityClass("low", 1, "manager"), s.priorityClass("high", 1000, "manager")
	s.submit("train", fixtures.Priority(low), fixtures.RunsOn())
	_, uid := s.awaitRunning("train")
	policy := s.refuseOn("w1", admissionregistration.Update, "object.spec.?priority == oldObject.spec.?priority", "priorities stay as they are")
	s.Eventually(func(g Gomega) {
		wls := s.workloads(g, "w1")
		g.Expect(wls).To(HaveLen(1))
		wls[0].Spec.Priority = ptr.To(int32(7))
		g.Expect(on("w1").Update(s.ctx, &wls[0], client.DryRunAll)).To(MatchError(ContainSubstring("priorities stay as they are")))
	}).Should(Succeed(), "the API server acts on the policy")

	update(s, "manager", s.job(s, "manager", "train"), func(j *jobType) { j.Labels[fixtures.PriorityLabel] = high })
	s.awaitEvent(s.namespace, "ChangeRefused", "priorities stay as they are")
	s.Expect(s.job(s, "w1", "train").UID).To(Equal(uid), "the job goes on")
	s.Expect(on("w1").Delete(s.ctx, policy)).To(Succeed())
	s.Eventually(func(g Gomega) {
		wls := s.workloads(g, "w1")
		g.Expect(wls).To(HaveLen(1))
		g.Expect(wls[0].Spec.Priority).To(HaveValue(BeEquivalentTo(1000)))
	}, 2*time.Minute).Should(Succeed())
	s.Expect(s.job(s, "w1", "train").UID).To(Equal(uid), "the job goes on")
}

// refuseOn has a cluster refuse an operation on Workloads of this site unless an expression holds.
func (s *site) refuseOn(cluster string, operation admissionregistration.OperationType, unless, message string) client.Object {
	s.t.Helper()
	policy := &admissionregistration.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: admissionregistration.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistration.Fail),
			MatchConstraints: &admissionregistration.MatchResources{NamespaceSelector: s.selector(), ResourceRules: []admissionregistration.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistration.RuleWithOperations{
					Operations: []admissionregistration.OperationType{operation},
					Rule:       admissionregistration.Rule{APIGroups: []string{kueue.SchemeGroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"workloads"}},
				},
			}}},
			Validations: []admissionregistration.Validation{{Expression: unless, Message: message}},
		},
	}
	s.putOn(cluster, policy)
	s.putOn(cluster, &admissionregistration.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: admissionregistration.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: s.namespace, ValidationActions: []admissionregistration.ValidationAction{admissionregistration.Deny},
		},
	})
	return policy
}

// awaitRefusal waits until the API server of w1 acts on the policy.
func (s *site) awaitRefusal() {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(client.IgnoreAlreadyExists(on("w1").Create(s.ctx, probe(s.namespace)))).To(Succeed())
		g.Expect(on("w1").Delete(s.ctx, probe(s.namespace), client.DryRunAll)).To(MatchError(ContainSubstring("nothing is deleted here")))
	}).Should(Succeed())
}

// probe is a Workload of nobody's.
func probe(namespace string) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
		Spec:       kueue.WorkloadSpec{PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: fixtures.Job(namespace, "probe").Spec.Template}}},
	}
}

// putOn makes an object that the test's cluster loses again at its end.
func (s *site) putOn(cluster string, obj client.Object) {
	s.t.Helper()
	s.Expect(on(cluster).Create(s.ctx, obj)).To(Succeed())
	s.t.Cleanup(func() { s.Expect(client.IgnoreNotFound(on(cluster).Delete(s.ctx, obj))).To(Succeed()) })
}

// selector is for this site's namespace.
func (s *site) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}}
}
