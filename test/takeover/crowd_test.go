package takeover_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/test/customjobs"
	"ferry.dev/ferry/test/fixtures"
)

const (
	// nothing is a quota that none of the samples fits in.
	nothing = "100m"
	plenty  = "1000"
)

// crowd is a namespace with queues of its own and a sample of each kind.
type crowd struct {
	*stage
	namespace string
	samples   []sample
	// runs is what is on the workers, and where the Workloads run, once all do.
	runs  trace
	where map[string]string
	// offers are the copies of Workloads that wait.
	offers trace
}

// trace tells objects of the workers from others of the same name: worker/kind/name → UID.
type trace map[string]types.UID

// submit makes the queues and the samples.
func (s *stage) submit(namespace, quota string, all []sample) *crowd {
	s.t.Helper()
	c := &crowd{stage: s, namespace: namespace, samples: all}
	s.Expect(s.fleet.InstallQueues(s.ctx, c.queues(quota))).To(Succeed())
	for _, sample := range all {
		objects, err := sample.read(namespace)
		s.Expect(err).NotTo(HaveOccurred())
		for _, o := range objects {
			s.Eventually(func() error { return client.IgnoreAlreadyExists(s.manager.Create(s.ctx, o.DeepCopy())) }).Should(Succeed(), o.GetKind())
		}
	}
	return c
}

func (c *crowd) queues(quota string) playground.QueueOptions {
	return fixtures.Queues(c.namespace, fixtures.WorkerCPU(quota), fixtures.ManagerCPU(plenty))
}

// release gives the workers the quota that this crowd waits for.
func (c *crowd) release() {
	c.t.Helper()
	queues := c.queues(plenty)
	queues.SetQuota = true
	c.Expect(c.fleet.InstallQueues(c.ctx, queues)).To(Succeed())
}

// awaitRunning waits until everything runs, and remembers as what and where.
func (c *crowd) awaitRunning() {
	c.t.Helper()
	c.Eventually(func(g Gomega) {
		want := 0
		c.where = map[string]string{}
		for _, wl := range c.workloads(g, c.expected()) {
			g.Expect(wl.Status.ClusterName).NotTo(BeNil(), "%s has a worker; %v", wl.Name, wl.Status.AdmissionChecks)
			g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)).To(BeTrue(), "%s is admitted; %v", wl.Name, wl.Status.AdmissionChecks)
			c.where[wl.Name] = *wl.Status.ClusterName
			if wl.OwnerReferences[0].Kind == customjobs.PipelineRun.GVK.Kind {
				continue // it has no pods
			}
			for _, set := range wl.Spec.PodSets {
				want += int(set.Count)
			}
		}
		g.Expect(c.podsRunning(g)).To(HaveLen(want), "pods")
		c.expectCustomStarted(g)
		c.runs = c.onWorkers(g)
	}).Should(Succeed(), "all of %s run", c.namespace)
}

// expected is how many Workloads Kueue makes.
func (c *crowd) expected() int {
	n := 0
	for _, s := range c.samples {
		n += max(s.workloads, 1)
	}
	return n
}

func (c *crowd) podsRunning(g Gomega) []string {
	var running []string
	for _, w := range c.fleet.Workers() {
		pods := &corev1.PodList{}
		g.Expect(w.Client().List(c.ctx, pods, client.InNamespace(c.namespace))).To(Succeed())
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				running = append(running, p.Name)
			}
		}
	}
	return running
}

func (c *crowd) expectCustomStarted(g Gomega) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(customjobs.PipelineRun.GVK)
	g.Expect(c.manager.List(c.ctx, list, client.InNamespace(c.namespace))).To(Succeed())
	for i := range list.Items {
		g.Expect(customjobs.PipelineRun.Read(&list.Items[i]).Started).NotTo(BeZero(), "by the manager's status")
	}
}

// onWorkers is everything of this crowd that may run.
func (c *crowd) onWorkers(g Gomega) trace {
	found := trace{}
	for _, w := range c.fleet.Workers() {
		for _, gvk := range c.kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			g.Expect(w.Client().List(c.ctx, list, client.InNamespace(c.namespace))).To(Succeed())
			for _, o := range list.Items {
				found[w.Name+"/"+gvk.Kind+"/"+o.GetName()] = o.GetUID()
			}
		}
	}
	return found
}

// workloads are the manager's.
func (c *crowd) workloads(g Gomega, n int) []kueue.Workload {
	list := &kueue.WorkloadList{}
	g.Expect(c.manager.List(c.ctx, list, client.InNamespace(c.namespace))).To(Succeed())
	g.Expect(list.Items).To(HaveLen(n), "Workloads")
	return list.Items
}

// awaitOffers waits until all workers were asked for everything.
func (c *crowd) awaitOffers() {
	c.t.Helper()
	want := c.expected()
	for _, s := range c.samples {
		if s.oneByOne {
			want -= s.workloads - 1
		}
	}
	c.Eventually(func(g Gomega) {
		c.offers = c.copies(g)
		g.Expect(len(c.offers)).To(BeNumerically(">=", want*len(c.fleet.Workers())))
	}).Should(Succeed(), "all of %s are offered", c.namespace)
	maps.DeleteFunc(c.offers, func(at string, _ types.UID) bool { return c.isOneByOne(at) })
}

// isOneByOne: the offer is of a set that was offered in part. Ferry offers a set as a whole, and so anew.
func (c *crowd) isOneByOne(at string) bool {
	return slices.ContainsFunc(c.samples, func(s sample) bool { return s.oneByOne && strings.Contains(at, "/"+s.example+"-") })
}

// expectOffers: what was offered still is.
func (c *crowd) expectOffers() {
	c.t.Helper()
	now := c.copies(c)
	for at, uid := range c.offers {
		c.Expect(now).To(HaveKeyWithValue(at, uid))
	}
}

// copies are the Workloads on the workers.
func (c *crowd) copies(g Gomega) trace {
	found := trace{}
	for _, w := range c.fleet.Workers() {
		list := &kueue.WorkloadList{}
		g.Expect(w.Client().List(c.ctx, list, client.InNamespace(c.namespace))).To(Succeed())
		for _, wl := range list.Items {
			found[w.Name+"/"+wl.Name] = wl.UID
		}
	}
	return found
}

// awaitAdopted: what MultiKueue made has Ferry's marks.
func (c *crowd) awaitAdopted() {
	c.t.Helper()
	c.Eventually(func(g Gomega) {
		for _, w := range c.fleet.Workers() {
			list := &kueue.WorkloadList{}
			g.Expect(w.Client().List(c.ctx, list, client.InNamespace(c.namespace))).To(Succeed())
			for _, wl := range list.Items {
				g.Expect(wl.Annotations).To(HaveKey(kinds.JobAnnotation), "Workload %s on %s", wl.Name, w.Name)
			}
		}
		for at := range c.runs {
			c.expectMarks(g, at)
		}
	}).Should(Succeed(), "%s is adopted", c.namespace)
}

// expectMarks: a pod or a job on a worker that has a namesake on the manager is known as its copy. What the job's operator
// made may have one too, where that operator runs on both sides.
func (c *crowd) expectMarks(g Gomega, at string) {
	worker, copied := c.find(at)
	original := copied.DeepCopy()
	err := c.manager.Get(c.ctx, client.ObjectKeyFromObject(original), original)
	if apierrors.IsNotFound(err) {
		return // the copy's controller made it
	}
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.fleet.Worker(worker).Client().Get(c.ctx, client.ObjectKeyFromObject(copied), copied)).To(Succeed())
	if metav1.GetControllerOf(copied) == nil || copied.GetKind() == podGVK.Kind {
		g.Expect(copied.GetAnnotations()).To(HaveKey(kinds.JobAnnotation), at)
	}
}

// expectUndisturbed: everything is where it was, the same object, nothing was evicted, and no pod runs on the manager.
func (c *crowd) expectUndisturbed() {
	c.t.Helper()
	c.Consistently(func(g Gomega) {
		g.Expect(c.onWorkers(g)).To(Equal(c.runs))
		for _, wl := range c.workloads(g, c.expected()) {
			g.Expect(wl.Status.ClusterName).To(HaveValue(Equal(c.where[wl.Name])), wl.Name)
			g.Expect(wl.Status.SchedulingStats).To(BeNil(), "%s was evicted", wl.Name)
		}
		c.expectNoneOnManager(g)
	}, "4s", "500ms").Should(Succeed(), c.namespace)
}

func (c *crowd) expectNoneOnManager(g Gomega) {
	pods := &corev1.PodList{}
	g.Expect(c.manager.List(c.ctx, pods, client.InNamespace(c.namespace))).To(Succeed())
	for _, p := range pods.Items {
		g.Expect(p.Spec.NodeName).To(BeEmpty(), "%s runs on the manager", p.Name)
	}
}

// expectSameOffers: each runs by the very copy that waited.
func (c *crowd) expectSameOffers() {
	c.t.Helper()
	for name, worker := range c.where {
		wl := &kueue.Workload{}
		c.Expect(c.fleet.Worker(worker).Client().Get(c.ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, wl)).To(Succeed())
		if uid, offered := c.offers[worker+"/"+name]; offered {
			c.Expect(wl.UID).To(Equal(uid), "the offer of %s on %s", name, worker)
		}
	}
}

// end lets everything end where it runs, and deletes what serves. Nothing is left then on the workers.
func (c *crowd) end() {
	c.t.Helper()
	ends := 0
	for _, s := range c.samples {
		if !s.serves {
			ends++
			continue
		}
		objects, err := s.read(c.namespace)
		c.Expect(err).NotTo(HaveOccurred())
		for _, o := range objects {
			c.Expect(c.manager.Delete(c.ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		}
	}
	c.Eventually(func(g Gomega) {
		c.hurry(g)
		for _, wl := range c.workloads(g, ends) {
			finished := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished)
			g.Expect(finished).To(HaveValue(HaveField("Reason", kueue.WorkloadFinishedReasonSucceeded)), "%s of %s", wl.Name, wl.OwnerReferences[0].Kind)
			g.Expect(wl.Status.ClusterName).To(HaveValue(Equal(c.where[wl.Name])), wl.Name)
			g.Expect(wl.Status.SchedulingStats).To(BeNil(), "%s was evicted", wl.Name)
		}
		g.Expect(c.onWorkers(g)).To(BeEmpty())
		c.expectNoneOnManager(g)
	}).Should(Succeed(), "%s ends", c.namespace)
}

// hurry tells what runs on the workers that its time is over.
func (c *crowd) hurry(g Gomega) {
	c.fleet.EndRayJobs()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "1ms", %q: "1ms"}}}`, playground.RunForAnnotation, customjobs.RunsFor))
	for at := range c.onWorkers(g) {
		worker, o := c.find(at)
		if kind := o.GetKind(); kind == podGVK.Kind || kind == customjobs.PipelineRun.GVK.Kind {
			g.Expect(client.IgnoreNotFound(c.fleet.Worker(worker).Client().Patch(c.ctx, o, patch))).To(Succeed())
		}
	}
}

// find is what a key of a trace stands for.
func (c *crowd) find(at string) (worker string, o *unstructured.Unstructured) {
	parts := strings.SplitN(at, "/", 3)
	o = &unstructured.Unstructured{}
	for _, gvk := range c.kinds {
		if gvk.Kind == parts[1] {
			o.SetGroupVersionKind(gvk)
		}
	}
	o.SetNamespace(c.namespace)
	o.SetName(parts[2])
	return parts[0], o
}
