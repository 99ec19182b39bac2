package e2e_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/test/fixtures"
)

// requests are the forms in which users ask for a place in the topology.
var requests = map[string]map[string]string{
	"required":      {kueue.PodSetRequiredTopologyAnnotation: playground.RackLabel},
	"preferred":     {kueue.PodSetPreferredTopologyAnnotation: corev1.LabelHostname},
	"unconstrained": {kueue.PodSetUnconstrainedTopologyAnnotation: "true"},
	"sliced": {
		kueue.PodSetPreferredTopologyAnnotation:     playground.BlockLabel,
		kueue.PodSetSliceRequiredTopologyAnnotation: corev1.LabelHostname, kueue.PodSetSliceSizeAnnotation: "1",
	},
}

// topologySite is a site whose flavors have a topology, which differs in all clusters but for its levels.
func topologySite(t *testing.T) *site {
	t.Helper()
	s := bareSite(t)
	name := func(cluster string) kueue.ResourceFlavorReference {
		return kueue.ResourceFlavorReference(s.namespace + "-racks-of-" + cluster)
	}
	for _, cluster := range append([]string{"manager"}, s.workers...) {
		named := metav1.ObjectMeta{Name: string(name(cluster))}
		s.putOn(cluster, &kueue.Topology{ObjectMeta: named, Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{
			{NodeLabel: playground.BlockLabel}, {NodeLabel: playground.RackLabel}, {NodeLabel: corev1.LabelHostname},
		}}})
		s.putOn(cluster, &kueue.ResourceFlavor{ObjectMeta: named, Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{playground.ClusterLabel: cluster}, TopologyName: ptr.To(kueue.TopologyReference(named.Name)),
		}})
	}
	s.installQueues(fixtures.ManagerCPU("5000"), fixtures.WorkerCPU("5000"), fixtures.Edit(func(cluster string, q *kueue.ClusterQueue) {
		q.Spec.ResourceGroups[0].Flavors[0].Name = name(cluster)
	}))
	return s
}

// TestTopologyOfAJob: the worker chooses the nodes; the manager knows none, and shows the job live all the same.
func TestTopologyOfAJob(t *testing.T) {
	t.Parallel()
	s := topologySite(t)
	for form, request := range requests {
		s.submit(form, fixtures.RunsFor(3*time.Second), fixtures.Pods(2, 2), func(job *batchv1.Job) { job.Spec.Template.Annotations = merged(job.Spec.Template.Annotations, request) })
	}
	for form := range requests {
		s.awaitRunning(form)
	}
	s.awaitPlaced()
	for form := range requests {
		s.awaitComplete(form)
		s.expectCreatedOnce(form)
	}
	s.awaitNothingOn(s.workers...)
}

// TestTopologyThatNoWorkerHas: two pods that fill more than half a node each never fit on one. That is said.
func TestTopologyThatNoWorkerHas(t *testing.T) {
	t.Parallel()
	s := topologySite(t)
	s.submit("wide", fixtures.CPU("600"), fixtures.Pods(2, 2), func(job *batchv1.Job) {
		job.Spec.Template.Annotations = merged(job.Spec.Template.Annotations, map[string]string{kueue.PodSetRequiredTopologyAnnotation: corev1.LabelHostname})
	})
	s.awaitMessage("wide", "w1 (no place in its topology)", "w2 (no place in its topology)")
}

// inRacks is a test of a kind by its example, each of whose pod sets has to be in one rack. Paths lead to its pod templates.
func inRacks(example string, templates ...string) func(*testing.T) {
	return func(t *testing.T) {
		s := topologySite(t)
		job := s.sample(example)
		s.leaveKind(job)
		s.leavePods()
		for _, path := range templates {
			annotate(job.Object, strings.Split(path, "."), requests["required"])
		}
		made := s.create("manager", job)
		s.Eventually(func(g Gomega) {
			for _, wl := range s.workloads(g, "manager") {
				g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadPodsReady)).To(BeTrue(), "pods are ready on the manager: %v", messagesOf(&wl))
			}
			g.Expect(s.workloads(g, "manager")).NotTo(BeEmpty())
		}).Should(Succeed())
		s.awaitPlaced()
		s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
		s.awaitNothingLeft(job)
	}
}

// annotate adds to the pod templates that a path leads to, in which * stands for every element of a list.
func annotate(at any, path []string, annotations map[string]string) {
	object, _ := at.(map[string]any)
	switch list, isList := at.([]any); {
	case len(path) == 0:
		template := &unstructured.Unstructured{Object: object}
		template.SetAnnotations(merged(template.GetAnnotations(), annotations))
	case isList && path[0] == "*":
		for _, element := range list {
			annotate(element, path[1:], annotations)
		}
	default:
		annotate(object[path[0]], path[1:], annotations)
	}
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// awaitPlaced: each worker's Kueue chose nodes, and the manager's admitted without knowing them.
func (s *site) awaitPlaced() {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		for _, wl := range s.workloads(g, "manager") {
			g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)).To(BeTrue(), "%v", messagesOf(&wl))
			for _, set := range wl.Status.Admission.PodSetAssignments {
				g.Expect(set.DelayedTopologyRequest).To(HaveValue(Equal(kueue.DelayedTopologyRequestStateReady)), "%s of %s", set.Name, wl.Name)
				g.Expect(set.TopologyAssignment).To(BeNil(), "nodes of another cluster")
			}
		}
		for _, worker := range s.workers {
			for _, wl := range s.workloads(g, worker) {
				g.Expect(wl.Status.Admission).NotTo(BeNil(), "%s on %s", wl.Name, worker)
				for _, set := range wl.Status.Admission.PodSetAssignments {
					g.Expect(set.TopologyAssignment).NotTo(BeNil(), "%s of %s on %s", set.Name, wl.Name, worker)
				}
			}
		}
	}).Should(Succeed(), "all have their nodes")
}
