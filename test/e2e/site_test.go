package e2e_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

// site is one test's part of the fleet: a namespace with queues of its own in all clusters.
type site struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	namespace string
	workers   []string
	// kinds are those of which users make objects here, besides Jobs.
	kinds []*unstructured.Unstructured
}

var sites atomic.Int32

const background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// notOurs selects what no Ferry made.
var notOurs = client.MatchingLabelsSelector{Selector: without(kueue.MultiKueueOriginLabel)}

func without(label string) labels.Selector {
	lacks, err := labels.NewRequirement(label, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*lacks)
}

// newSite makes a namespace and its queues. When the test fails, it tells what the clusters look like.
func newSite(t *testing.T, options ...fixtures.QueueOption) *site {
	t.Helper()
	s := bareSite(t)
	s.installQueues(options...)
	return s
}

// bareSite is a site without queues.
func bareSite(t *testing.T) *site {
	t.Helper()
	s := &site{WithT: NewWithT(t), t: t, ctx: context.Background(), namespace: fmt.Sprintf("site-%d", sites.Add(1))}
	for _, w := range fleet.Workers() {
		s.workers = append(s.workers, w.Name)
	}
	t.Cleanup(s.leave)
	t.Cleanup(func() {
		if t.Failed() {
			s.dump()
		}
	})
	return s
}

func (s *site) installQueues(options ...fixtures.QueueOption) {
	s.t.Helper()
	s.Expect(fleet.InstallQueues(s.ctx, fixtures.Queues(s.namespace, options...))).To(Succeed())
}

// leave stops what still runs, so that other tests have the machine. The copies are Ferry's to remove.
func (s *site) leave() {
	objects := []client.Object{&batchv1.Job{}}
	for _, kind := range s.kinds {
		objects = append(objects, kind.DeepCopy())
	}
	for _, c := range fleet.Clusters() {
		for _, obj := range objects {
			if err := c.Client().DeleteAllOf(s.ctx, obj, client.InNamespace(s.namespace), background, notOurs); err != nil {
				s.t.Logf("clean up %T %s of %s on %s: %v", obj, obj.GetObjectKind().GroupVersionKind().Kind, s.namespace, c.Name, err)
			}
		}
	}
}

// leaveKind lets leave delete what users made of a kind.
func (s *site) leaveKind(obj *unstructured.Unstructured) { s.kinds = append(s.kinds, obj) }

func manager() client.Client { return fleet.Manager().Client() }

func on(cluster string) client.Client {
	if cluster == "manager" {
		return manager()
	}
	return fleet.Worker(cluster).Client()
}

func (s *site) submit(name string, options ...fixtures.JobOption) *batchv1.Job {
	s.t.Helper()
	job := fixtures.Job(s.namespace, name, options...)
	s.Expect(manager().Create(s.ctx, job)).To(Succeed())
	return job
}

// job reads a Job of this site; nil when there is none.
func (s *site) job(g Gomega, cluster, name string) *batchv1.Job {
	job := &batchv1.Job{}
	err := on(cluster).Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, job)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.Expect(err).NotTo(HaveOccurred())
	return job
}

// workloads lists the Workloads of this site in a cluster.
func (s *site) workloads(g Gomega, cluster string) []kueue.Workload {
	var list kueue.WorkloadList
	g.Expect(on(cluster).List(s.ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	return list.Items
}

// workload is the manager's Workload of a Job; the assertion fails while there is none.
func (s *site) workload(g Gomega, job string) *kueue.Workload {
	list := s.workloads(g, "manager")
	for i := range list {
		for _, owner := range list[i].OwnerReferences {
			if owner.Kind == "Job" && owner.Name == job {
				return &list[i]
			}
		}
	}
	g.Expect(list).To(BeNil(), "a Workload of Job %s on the manager", job)
	g.Expect(job).To(BeEmpty(), "no Workload of this Job on the manager")
	return nil
}

// check is the state of our admission check on a Job's Workload.
func (s *site) check(g Gomega, job string) kueue.AdmissionCheckState {
	wl := s.workload(g, job)
	for _, c := range wl.Status.AdmissionChecks {
		if string(c.Name) == s.namespace {
			return c
		}
	}
	g.Expect(wl.Status.AdmissionChecks).To(ContainElement(HaveField("Name", s.namespace)))
	return kueue.AdmissionCheckState{}
}

// update changes an object of a cluster, anew on each conflict.
func update[T client.Object](s *site, cluster string, obj T, change func(T)) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(on(cluster).Get(s.ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		change(obj)
		g.Expect(on(cluster).Update(s.ctx, obj)).To(Succeed())
	}).Should(Succeed())
}

// clusterQueue is the name of this site's ClusterQueue in a cluster.
func (s *site) clusterQueue(cluster string) string {
	return fixtures.Queues(s.namespace).ClusterQueueOn(cluster)
}

// setQueue changes this site's ClusterQueue in a cluster.
func (s *site) setQueue(cluster string, change func(*kueue.ClusterQueue)) {
	s.t.Helper()
	update(s, cluster, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.clusterQueue(cluster)}}, change)
}

func (s *site) setStopPolicy(cluster string, policy kueue.StopPolicy) {
	s.t.Helper()
	s.setQueue(cluster, func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = &policy })
}

func (s *site) setCPU(cluster, quantity string) {
	s.t.Helper()
	s.setQueue(cluster, func(q *kueue.ClusterQueue) {
		resources := q.Spec.ResourceGroups[0].Flavors[0].Resources
		for i := range resources {
			if resources[i].Name == corev1.ResourceCPU {
				resources[i].NominalQuota = quantityOf(quantity)
			}
		}
	})
}

func other(worker string) string {
	if worker == "w1" {
		return "w2"
	}
	return "w1"
}
