package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/playground/audit"
	"ferry.dev/ferry/test/fixtures"
)

// sample reads an example of a kind, as its users write it, into this site.
func (s *site) sample(name string) *unstructured.Unstructured {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "examples", "kinds", name+".yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	json, err := yaml.YAMLToJSONStrict(raw)
	s.Expect(err).NotTo(HaveOccurred())
	job := &unstructured.Unstructured{}
	s.Expect(job.UnmarshalJSON(json)).To(Succeed())
	labels := job.GetLabels()
	s.Expect(labels).To(HaveKey(fixtures.QueueLabel))
	labels[fixtures.QueueLabel] = fixtures.Queue
	job.SetLabels(labels)
	job.SetNamespace(s.namespace)
	return job
}

// kindOf is the row of an object's kind.
func (s *site) kindOf(obj *unstructured.Unstructured) *kinds.Kind {
	s.t.Helper()
	row := kinds.NewTable(kinds.Frameworks()).ByName(obj.GroupVersionKind().GroupKind().String())
	s.Expect(row).NotTo(BeNil(), obj.GetKind())
	return row
}

// read is the object as a cluster has it now; nil when there is none.
func (s *site) read(g Gomega, cluster string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(obj.GroupVersionKind())
	err := on(cluster).Get(s.ctx, client.ObjectKeyFromObject(obj), now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.Expect(err).NotTo(HaveOccurred())
	return now
}

// workloadOf is the manager's Workload of an object; the assertion fails while there is none.
func (s *site) workloadOf(g Gomega, obj *unstructured.Unstructured) *kueue.Workload {
	list := s.workloads(g, "manager")
	i := slices.IndexFunc(list, func(wl kueue.Workload) bool {
		return slices.ContainsFunc(wl.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == obj.GetKind() && o.Name == obj.GetName() })
	})
	g.Expect(i).To(BeNumerically(">=", 0), "no Workload of %s %s on the manager", obj.GetKind(), obj.GetName())
	return &list[i]
}

// awaitMirrored waits until a worker runs pods of the object, and the manager shows the very status that the copy there has.
func (s *site) awaitMirrored(obj *unstructured.Unstructured) (worker string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		wl := s.workloadOf(g, obj)
		g.Expect(wl.Status.ClusterName).NotTo(BeNil(), "clusterName; %v", messagesOf(wl))
		worker = *wl.Status.ClusterName
		copied := s.read(g, worker, obj)
		g.Expect(copied).NotTo(BeNil(), "the copy on %s", worker)
		g.Expect(s.pods(g, worker)).NotTo(BeEmpty(), "pods on %s", worker)
		g.Expect(statusOf(s.read(g, "manager", obj))).To(Equal(statusOf(copied)))
		g.Expect(statusOf(copied)).NotTo(BeEmpty())
	}).WithPolling(20*time.Millisecond).Should(Succeed(), "%s %s should run", obj.GetKind(), obj.GetName())
	return worker
}

// statusOf leaves out what is in each cluster's own terms.
func statusOf(obj *unstructured.Unstructured) map[string]any {
	status, found, _ := unstructured.NestedMap(obj.Object, "status")
	if !found {
		return map[string]any{} // the API server leaves an empty one out
	}
	delete(status, "observedGeneration")
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if condition, is := c.(map[string]any); is {
			delete(condition, "observedGeneration")
		}
	}
	return status
}

func messagesOf(wl *kueue.Workload) []string {
	var messages []string
	for _, c := range wl.Status.AdmissionChecks {
		messages = append(messages, c.Message)
	}
	for _, c := range wl.Status.Conditions {
		messages = append(messages, c.Type+"="+string(c.Status)+": "+c.Message)
	}
	return messages
}

func (s *site) pods(g Gomega, cluster string) []string {
	var list corev1.PodList
	g.Expect(on(cluster).List(s.ctx, &list, client.InNamespace(s.namespace))).To(Succeed())
	var names []string
	for _, p := range list.Items {
		names = append(names, p.Name+"="+string(p.Status.Phase))
	}
	return names
}

// awaitOver waits until the manager shows that the object ended, and its Workload is finished for that reason.
func (s *site) awaitOver(obj *unstructured.Unstructured, reason string) {
	s.t.Helper()
	row := s.kindOf(obj)
	s.Eventually(func(g Gomega) {
		now := s.read(g, "manager", obj)
		g.Expect(now).NotTo(BeNil(), "the original")
		over, known := row.Ended(now)
		g.Expect(known).To(BeTrue())
		g.Expect(over).To(BeTrue(), "status %v; %v", now.Object["status"], messagesOf(s.workloadOf(g, obj)))
		finished := meta.FindStatusCondition(s.workloadOf(g, obj).Status.Conditions, kueue.WorkloadFinished)
		g.Expect(finished).To(HaveValue(HaveField("Reason", reason)))
	}).Should(Succeed(), "%s %s should end", obj.GetKind(), obj.GetName())
}

// awaitNothingLeft waits until no worker has anything of this kind, or any Workload or pod, in this site.
func (s *site) awaitNothingLeft(obj *unstructured.Unstructured) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, w := range s.workers {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(obj.GroupVersionKind().GroupVersion().WithKind(obj.GetKind() + "List"))
			g.Expect(on(w).List(s.ctx, list, client.InNamespace(s.namespace))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty(), "on %s", w)
			g.Expect(s.workloads(g, w)).To(BeEmpty(), "Workloads on %s", w)
			g.Expect(s.pods(g, w)).To(BeEmpty(), "pods on %s", w)
		}
	}).Should(Succeed(), "nothing of %s %s should stay on workers", obj.GetKind(), obj.GetName())
}

// expectNoPodEver: no pod of this site was ever made on the manager.
func (s *site) expectNoPodEver() {
	s.t.Helper()
	counts, err := audit.CountRequests(fleet.Manager().AuditLog(), time.Time{}, func(r audit.Request) bool {
		return r.Verb == "create" && r.Resource == "pods" && r.Namespace == s.namespace
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(counts.Total()).To(BeZero(), "pods made on the manager")
}

// create makes a copy of the object in a cluster and returns it.
func (s *site) create(cluster string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	s.t.Helper()
	made := obj.DeepCopy()
	s.Expect(on(cluster).Create(s.ctx, made)).To(Succeed(), "%s on %s", obj.GetKind(), cluster)
	return made
}

// longest is a name of the length, which begins with the object's.
func longest(obj *unstructured.Unstructured, length int) string {
	return obj.GetName() + "-" + strings.Repeat("x", length-len(obj.GetName())-1)
}
