package e2e_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/test/fixtures"
)

// TestWithFerryDownWhatIsNotDispatchedIsCreated: only jobs with a queue wait for Ferry, and are refused, not lost.
func TestWithFerryDownWhatIsNotDispatchedIsCreated(t *testing.T) {
	s := alone(t)
	s.stopFerry()
	plain := fixtures.Job(s.namespace, "plain", fixtures.InQueue(""), func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(0)) })
	labelled := fixtures.Job(s.namespace, "labelled", fixtures.InQueue(""), func(job *batchv1.Job) {
		job.Labels, job.Spec.Parallelism = map[string]string{"app": "x"}, new(int32(0))
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "plain"}, Spec: plain.Spec.Template.Spec}
	for _, object := range []client.Object{plain, labelled, pod} {
		s.Expect(manager().Create(s.ctx, object)).To(Succeed())
	}
	dispatched := fixtures.Job(s.namespace, "train")
	s.Expect(manager().Create(s.ctx, dispatched)).To(MatchError(ContainSubstring(`failed calling webhook "job.batch.ferry.dev"`)))
	s.startFerry()
	s.submit("train")
	s.awaitComplete("train")
	s.Expect(manager().Delete(s.ctx, pod)).To(Succeed())
}

// TestJobInTheDefaultQueue: Kueue gives a job its queue in a webhook of its own, of which Ferry's must see the result.
func TestJobInTheDefaultQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	queues := playground.QueueOptions{ClusterQueue: s.namespace, Apart: true}
	for _, c := range fleet.Clusters() {
		s.Expect(c.Client().Create(s.ctx, &kueue.LocalQueue{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "default"},
			Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queues.ClusterQueueOn(c.Name))},
		})).To(Succeed())
	}
	s.Eventually(func() error { // until Kueue knows of the queue it gives it to nobody
		probe := fixtures.Job(s.namespace, "probe", fixtures.InQueue(""))
		if err := manager().Create(s.ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Labels[fixtures.QueueLabel] != "default" {
			return errors.New("no default queue yet")
		}
		return nil
	}).Should(Succeed())
	job := s.submit("train", fixtures.InQueue(""))
	s.Expect(job.Spec.ManagedBy).To(HaveValue(Equal(kueue.MultiKueueControllerName)))
	s.awaitComplete("train")
	s.expectCreatedOnce("train")
}

// TestFlavorOfAnOlderVersion: as with an installed Kueue, which converts only some of its kinds.
func TestFlavorOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	for _, c := range fleet.Clusters() {
		flavor := manifest.Object("kueue.x-k8s.io/v1beta1", "ResourceFlavor", "", s.namespace+"-old")
		s.Expect(c.Client().Create(s.ctx, flavor)).To(Succeed())
		s.Expect(c.Client().Delete(s.ctx, flavor)).To(Succeed())
	}
}
