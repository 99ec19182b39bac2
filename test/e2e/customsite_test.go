package e2e_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/test/customjobs"
	"ferry.dev/ferry/test/fixtures"
)

// externalFrameworks are the kinds of customjobs as an operator would configure them. Their CRDs come later.
const externalFrameworks = `
  - name: PipelineRun.v1.tekton.dev
    suspend: spec.status=PipelineRunPending
  - name: Workflow.v1alpha1.argoproj.io
    managedBy: metadata.labels[` + customjobs.InstanceID + `]
    drop: [spec.ttlStrategy]
    flow: [spec.shutdown]
    suspend: spec.suspend
    statusSubresource: false`

// customSite is a site for jobs of one custom kind.
type customSite struct {
	*site
	kind      *customjobs.Kind
	operators map[string]*customjobs.Operator
}

func newCustomSite(t *testing.T, kind *customjobs.Kind, options ...fixtures.QueueOption) *customSite {
	t.Helper()
	s := &customSite{site: newSite(t, options...), kind: kind, operators: map[string]*customjobs.Operator{}}
	s.letFerry()
	t.Cleanup(func() {
		for cluster := range s.operators {
			s.stopOperator(cluster)
		}
	})
	return s
}

// install brings the CRD, and then the operator, to clusters.
func (s *customSite) install(clusters ...string) {
	s.t.Helper()
	for _, cluster := range clusters {
		crd, err := s.kind.Definition(s.ctx)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(manifest.Apply(s.ctx, on(cluster), crd)).To(Succeed())
		s.Eventually(func(g Gomega) {
			live := manifest.Object(crd.GetAPIVersion(), crd.GetKind(), "", crd.GetName())
			g.Expect(on(cluster).Get(s.ctx, client.ObjectKeyFromObject(crd), live)).To(Succeed())
			g.Expect(manifest.Established(live)).To(BeTrue())
		}).Should(Succeed())
		o, err := customjobs.Start(accessTo(cluster).RESTConfig(), s.kind, s.namespace)
		s.Expect(err).NotTo(HaveOccurred())
		s.operators[cluster] = o
	}
}

func (s *customSite) stopOperator(cluster string) {
	s.t.Helper()
	s.Expect(s.operators[cluster].Stop()).To(Succeed())
	delete(s.operators, cluster)
}

// uninstall removes the operator and the CRD, with all its objects.
func (s *customSite) uninstall(cluster string) {
	s.t.Helper()
	s.stopOperator(cluster)
	crd, err := s.kind.Definition(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(on(cluster).Delete(s.ctx, crd)).To(Succeed())
	s.Eventually(func() bool {
		live := manifest.Object(crd.GetAPIVersion(), crd.GetKind(), "", crd.GetName())
		return apierrors.IsNotFound(on(cluster).Get(s.ctx, client.ObjectKeyFromObject(crd), live))
	}).Should(BeTrue(), "the CRD goes from %s", cluster)
}

func accessTo(cluster string) *playground.Cluster {
	if cluster == "manager" {
		return fleet.Manager()
	}
	return fleet.Worker(cluster)
}

func (s *customSite) submit(name string, annotations map[string]string) {
	s.t.Helper()
	s.Expect(manager().Create(s.ctx, s.kind.New(s.namespace, name, fixtures.Queue, annotations))).To(Succeed())
}

// custom reads a job; nil when there is none.
func (s *customSite) custom(g Gomega, cluster, name string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(s.kind.GVK)
	err := on(cluster).Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, job)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	g.Expect(err).NotTo(HaveOccurred())
	return job
}

// customWorkload is the manager's Workload of a job.
func (s *customSite) customWorkload(g Gomega, job string) *kueue.Workload {
	var found *kueue.Workload
	list := s.workloads(g, "manager")
	for i := range list {
		if owner := metav1.GetControllerOf(&list[i]); owner != nil && owner.Name == job {
			found = &list[i]
		}
	}
	g.Expect(found).NotTo(BeNil(), "a Workload of %s on the manager", job)
	return found
}

func (s *customSite) awaitCustomMessage(job string, parts ...string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		checks := s.customWorkload(g, job).Status.AdmissionChecks
		g.Expect(checks).NotTo(BeEmpty())
		for _, part := range parts {
			g.Expect(checks[0].Message).To(ContainSubstring(part))
		}
	}).Should(Succeed(), "the check's message of %s", job)
}

// awaitCustomRunning waits until a worker runs the job and the manager shows the same status.
func (s *customSite) awaitCustomRunning(job string) (worker string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		wl := s.customWorkload(g, job)
		g.Expect(wl.Status.ClusterName).NotTo(BeNil(), "clusterName")
		worker = *wl.Status.ClusterName
		copied, original := s.custom(g, worker, job), s.custom(g, "manager", job)
		g.Expect(copied).NotTo(BeNil(), "the copy on %s", worker)
		g.Expect(s.kind.Read(copied).Started).NotTo(BeZero(), "it runs on %s", worker)
		g.Expect(original.Object["status"]).To(Equal(copied.Object["status"]))
	}).Should(Succeed(), "%s should run", job)
	return worker
}

// awaitCustomEnded waits until the manager shows the job's end and its Workload is finished.
func (s *customSite) awaitCustomEnded(job, reason string) *unstructured.Unstructured {
	s.t.Helper()
	var original *unstructured.Unstructured
	s.Eventually(func(g Gomega) {
		original = s.custom(g, "manager", job)
		g.Expect(original).NotTo(BeNil())
		g.Expect(s.kind.Read(original).Ended).NotTo(BeZero(), "status %v", original.Object["status"])
		finished := meta.FindStatusCondition(s.customWorkload(g, job).Status.Conditions, kueue.WorkloadFinished)
		g.Expect(finished).To(HaveValue(HaveField("Reason", reason)))
	}).Should(Succeed(), "%s should end", job)
	return original
}

func (s *customSite) awaitNoCustomOn(workers ...string) {
	s.t.Helper()
	s.awaitNothingOn(workers...)
	s.Eventually(func(g Gomega) {
		for _, w := range workers {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(s.kind.GVK.GroupVersion().WithKind(s.kind.GVK.Kind + "List"))
			err := on(w).List(s.ctx, list, client.InNamespace(s.namespace))
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				continue
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.Items).To(BeEmpty(), "copies on %s", w)
		}
	}).Should(Succeed())
}

// customCreations counts by worker how often Ferry made a job of this name there.
func (s *customSite) customCreations(job string) map[string]int {
	made := map[string]int{}
	for _, w := range s.workers {
		counts, err := audit.CountRequests(fleet.Worker(w).AuditLog(), time.Time{}, func(r audit.Request) bool {
			return r.User == playground.UserFerry && r.Verb == "create" && r.Resource == s.kind.Resource && r.Code == http.StatusCreated &&
				r.Namespace == s.namespace && r.Name == job
		})
		s.Expect(err).NotTo(HaveOccurred())
		if n := counts.Total(); n > 0 {
			made[w] = n
		}
	}
	return made
}

var customRights sync.Once

// letFerry gives Ferry what it prints for its configuration: its rights in all clusters, and its webhooks.
func (s *customSite) letFerry() {
	s.t.Helper()
	customRights.Do(func() { s.Expect(fleet.GrantByConfig(s.ctx)).To(Succeed()) })
}
