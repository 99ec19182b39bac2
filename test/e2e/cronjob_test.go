package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// TestJobsOfACronJob: they are Jobs as any other, though somebody owns them.
func TestJobsOfACronJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	template := fixtures.Job(s.namespace, "")
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "nightly"},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	}
	s.Expect(manager().Create(s.ctx, cron)).To(Succeed())
	s.Eventually(func(g Gomega) {
		var jobs batchv1.JobList
		g.Expect(manager().List(s.ctx, &jobs, client.InNamespace(s.namespace))).To(Succeed())
		g.Expect(jobs.Items).NotTo(BeEmpty(), "no Job of the CronJob yet")
		job := jobs.Items[0]
		g.Expect(metav1.GetControllerOf(&job)).To(HaveField("Kind", "CronJob"))
		g.Expect(job.Spec.ManagedBy).To(HaveValue(Equal(kueue.MultiKueueControllerName)))
		g.Expect(ended(&job, batchv1.JobComplete)).To(BeTrue(), "%s is complete", job.Name)
	}).WithTimeout(2 * soon).Should(Succeed())
	s.Eventually(func(g Gomega) {
		var read batchv1.CronJob
		g.Expect(manager().Get(s.ctx, client.ObjectKeyFromObject(cron), &read)).To(Succeed())
		g.Expect(read.Status.LastSuccessfulTime).NotTo(BeNil(), "the CronJob takes note")
	}).Should(Succeed())
	s.Expect(manager().Delete(s.ctx, cron, background)).To(Succeed())
	for _, w := range s.workers {
		s.Eventually(func(g Gomega) { g.Expect(s.copies(g, w)).To(BeEmpty()) }).Should(Succeed())
	}
}
