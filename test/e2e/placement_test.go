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

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/test/fixtures"
)

// TestWhereAJobMayGo: the job, its queue and its namespace each restrict it, by names and by the labels of
// MultiKueueClusters; a mistake is said, and put right later.
func TestWhereAJobMayGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	twin := s.addTwin("w2")
	s.setConfig(func(c *kueue.MultiKueueConfig) { c.Spec.Clusters = []string{"w1", twin} })
	update(s, "manager", &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: twin}}, func(c *kueue.MultiKueueCluster) {
		metav1.SetMetaDataLabel(&c.ObjectMeta, "gpu", "h100")
	})

	s.submit("pinned", fixtures.RunsOn(), annotated(placement.ClustersAnnotation, twin))
	s.submit("selecting", fixtures.RunsOn(), annotated(placement.SelectorAnnotation, "gpu=h100"))
	s.submit("mistaken", fixtures.RunsOn(), annotated(placement.SelectorAnnotation, "gpu = = h100"))
	for _, job := range []string{"pinned", "selecting"} {
		s.Eventually(func(g Gomega) { g.Expect(s.workload(g, job).Status.ClusterName).To(HaveValue(Equal(twin))) }).Should(Succeed(), job)
	}
	s.awaitMessage("mistaken", "is no label selector such as region=eu,tier!=spot")
	s.awaitEvent(s.namespace, "MultiKueue", "is no label selector")
	update(s, "manager", s.job(s, "manager", "mistaken"), func(j *jobType) { j.Annotations[placement.SelectorAnnotation] = "!gpu" })
	s.awaitRunningOn("w1", "mistaken")

	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fixtures.Queue}}
	update(s, "manager", queue, func(q *kueue.LocalQueue) {
		metav1.SetMetaDataAnnotation(&q.ObjectMeta, placement.ClustersAnnotation, "w1")
	})
	s.submit("queued", fixtures.RunsOn())
	s.awaitRunningOn("w1", "queued")
	s.submit("nowhere", fixtures.RunsOn(), annotated(placement.ClustersAnnotation, twin))
	s.awaitMessage("nowhere", `w1: left out by ferry.dev/clusters "`+twin+`" of the job`, twin+`: left out by ferry.dev/clusters "w1" of its LocalQueue`)
	update(s, "manager", queue, func(q *kueue.LocalQueue) { q.Annotations[placement.ClustersAnnotation] = "" })
	s.Eventually(func(g Gomega) { g.Expect(s.workload(g, "nowhere").Status.ClusterName).To(HaveValue(Equal(twin))) }).Should(Succeed())

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	update(s, "manager", namespace, func(n *corev1.Namespace) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, placement.SelectorAnnotation, "!gpu")
	})
	s.submit("housed", fixtures.RunsOn())
	s.awaitRunningOn("w1", "housed")
	s.Expect(s.job(s, "w1", "housed").Annotations).NotTo(HaveKey(placement.ClustersAnnotation), "what is Ferry's is not copied")
}

// TestCordonedWorker: it gets no new jobs, what waits there is withdrawn, and what runs there stays.
func TestCordonedWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.CPUOf("w1", "2"), fixtures.CPUOf("w2", "1"))
	twin := s.addTwin("w2")
	s.setConfig(func(c *kueue.MultiKueueConfig) { c.Spec.Clusters = []string{"w1", twin} })
	s.submit("first", fixtures.CPU("1"), fixtures.RunsOn(), annotated(placement.ClustersAnnotation, twin))
	s.Eventually(func(g Gomega) { g.Expect(s.job(g, "w2", "first")).NotTo(BeNil()) }).Should(Succeed())
	uid := s.job(s, "w2", "first").UID
	s.submit("second", fixtures.CPU("2"), fixtures.RunsOn())
	s.awaitRunningOn("w1", "second")
	s.submit("third", fixtures.CPU("1"), fixtures.RunsOn())
	s.awaitMessage("third", "Offered to w1", twin)

	s.annotateCluster(twin, placement.CordonAnnotation, "true")
	s.awaitMessage("third", "w1 (waits for quota)", twin+": cordoned")
	s.Eventually(func(g Gomega) {
		for _, wl := range s.workloads(g, "w2") {
			g.Expect(wl.Name).NotTo(Equal(s.workload(g, "third").Name), "the offer is withdrawn")
		}
	}).Should(Succeed())
	s.Expect(s.job(s, "w2", "first").UID).To(Equal(uid), "what runs stays")
	s.Expect(manager().Delete(s.ctx, s.job(s, "manager", "first"), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	s.annotateCluster(twin, placement.CordonAnnotation, "")
	s.Eventually(func(g Gomega) { g.Expect(s.workload(g, "third").Status.ClusterName).To(HaveValue(Equal(twin))) }, 2*time.Minute).Should(Succeed())
}

func annotated(key, value string) fixtures.JobOption {
	return func(job *jobType) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, key, value) }
}

// TestDrainedWorker: what waits there is withdrawn at once, what runs moves, but for what is to be kept; the condition
// tells how far it is.
func TestDrainedWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	twin := s.addTwin("w2")
	s.setConfig(func(c *kueue.MultiKueueConfig) { c.Spec.Clusters = []string{twin} })
	jobs := numbered("train", 3)
	for _, job := range jobs {
		s.submit(job, fixtures.RunsOn())
	}
	s.submit("kept", fixtures.RunsFor(20*time.Second), annotated(placement.KeepAnnotation, "true"))
	s.Eventually(func(g Gomega) {
		for _, name := range append([]string{"kept"}, jobs...) {
			g.Expect(s.workload(g, name).Status.ClusterName).To(HaveValue(Equal(twin)), name)
		}
	}).Should(Succeed())
	s.setConfig(func(c *kueue.MultiKueueConfig) { c.Spec.Clusters = []string{twin, "w1"} })
	s.annotateCluster(twin, placement.DrainAnnotation, "true")
	for _, job := range jobs {
		s.awaitRunningOn("w1", job)
	}
	s.awaitDrained(twin, metav1.ConditionFalse, "kept to their end by ferry.dev/keep: 1")
	s.awaitComplete("kept")
	s.awaitDrained(twin, metav1.ConditionTrue, "No job is left")
	s.awaitNothingOn("w2")
	s.Expect(s.creations(s, "kept")).To(Equal(map[string]int{"w2": 1}))
	s.annotateCluster(twin, placement.DrainAnnotation, "")
	s.Eventually(func(g Gomega) {
		cluster := &kueue.MultiKueueCluster{}
		g.Expect(manager().Get(s.ctx, client.ObjectKey{Name: twin}, cluster)).To(Succeed())
		g.Expect(meta.FindStatusCondition(cluster.Status.Conditions, "Drained")).To(BeNil())
	}).Should(Succeed())
}

func (s *site) awaitDrained(cluster string, status metav1.ConditionStatus, message string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		c := &kueue.MultiKueueCluster{}
		g.Expect(manager().Get(s.ctx, client.ObjectKey{Name: cluster}, c)).To(Succeed())
		g.Expect(meta.FindStatusCondition(c.Status.Conditions, "Drained")).To(And(HaveField("Status", status), HaveField("Message", ContainSubstring(message))))
	}, 2*time.Minute).Should(Succeed())
}
