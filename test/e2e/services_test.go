package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestServicesOverDispatchedPods: a Service of the manager that selects dispatched pods gets no address of a worker, and
// the controllers of the manager have no trouble with it. LeaderWorkerSet makes one that publishes also what is not ready.
func TestServicesOverDispatchedPods(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.leavePods()
	deployment := s.sample("deployment")
	name := deployment.GetName()
	labels, _, err := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(labels).NotTo(BeEmpty())
	for service, publish := range map[string]bool{"web": false, "publishes-all": true} {
		s.Expect(manager().Create(s.ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: service},
			Spec: corev1.ServiceSpec{
				Selector: labels, PublishNotReadyAddresses: publish,
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
			},
		})).To(Succeed())
	}
	s.create("manager", deployment)
	worker := s.theWorkerOf(name, 3)
	s.awaitReady(deployment, worker, 3, deploymentIsReady...)
	s.Consistently(func(g Gomega) {
		var slices discoveryv1.EndpointSliceList
		g.Expect(manager().List(s.ctx, &slices, client.InNamespace(s.namespace))).To(Succeed())
		for _, slice := range slices.Items {
			g.Expect(slice.Endpoints).To(BeEmpty(), "endpoints in %s", slice.Name)
		}
		var events corev1.EventList
		g.Expect(manager().List(s.ctx, &events, client.InNamespace(s.namespace))).To(Succeed())
		for _, e := range events.Items {
			troubled := e.Type == corev1.EventTypeWarning && (e.InvolvedObject.Kind == "Service" || e.InvolvedObject.Kind == "Endpoints")
			g.Expect(troubled).To(BeFalse(), "%s: %s", e.Reason, e.Message)
		}
	}).WithTimeout(5 * time.Second).Should(Succeed())
	s.awaitGone(deployment)
}
