package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
)

// managedKind is a kind with a managedBy field, and its example in examples/kinds.
type managedKind struct {
	example string
	// serves: it runs until it is deleted.
	serves bool
	// selfDeleting are settings by which the worker would delete the copy at its end.
	selfDeleting map[string]any
	// longName is how long a name may be; 0 where the kind allows none that matters here.
	longName int
	// runOn lets a job run longer than any test; nil where the pods' annotations do.
	runOn func(*site, *unstructured.Unstructured)
}

// edits are what an operator and Kueue allow while a job runs, and what else is special about its kinds.
var edits = map[string]map[string]func(*testing.T){
	"jobset": {"jobset in racks": inRacks("jobset", "spec.replicatedJobs.*.template.spec.template")},
	"kuberay": {
		"rayservice config": editServeConfig, "raycluster replicas": editReplicas,
		"rayjob in racks": inRacks("rayjob", "spec.rayClusterSpec.headGroupSpec.template", "spec.rayClusterSpec.workerGroupSpecs.*.template"),
	},
	"trainer": {"trainjob of a TrainingRuntime": runsByTrainingRuntime},
}

var runPolicyTTL = map[string]any{"spec.runPolicy.ttlSecondsAfterFinished": int64(0)}

// operators are started one after the other, lest they all need the machine at once.
var operators = []struct {
	name  string
	kinds []managedKind
}{
	{"jobset", []managedKind{{example: "jobset", selfDeleting: map[string]any{"spec.ttlSecondsAfterFinished": int64(0)}}}},
	{"training-operator", []managedKind{
		{example: "pytorchjob", selfDeleting: runPolicyTTL, longName: 52}, {example: "tfjob", selfDeleting: runPolicyTTL},
		{example: "xgboostjob", selfDeleting: runPolicyTTL}, {example: "paddlejob", selfDeleting: runPolicyTTL}, {example: "jaxjob", selfDeleting: runPolicyTTL},
	}},
	{"mpi-operator", []managedKind{{example: "mpijob", selfDeleting: runPolicyTTL}}},
	{"kuberay", []managedKind{{example: "rayjob", runOn: rayJobRunsOn}, {example: "raycluster", serves: true}, {example: "rayservice", serves: true}}},
	{"trainer", []managedKind{{example: "trainjob", runOn: trainJobRunsOn}}},
	{"appwrapper", []managedKind{{example: "appwrapper", longName: 60}}},
}

// TestKindsWithManagedBy runs an example of each kind under its own operator.
func TestKindsWithManagedBy(t *testing.T) {
	for _, operator := range operators {
		t.Run(operator.name, func(t *testing.T) {
			startOperator(t, operator.name)
			t.Run("beside each other", func(t *testing.T) {
				for _, kind := range operator.kinds {
					t.Run(kind.example, func(t *testing.T) {
						t.Parallel()
						runsAsWritten(t, kind)
					})
					t.Run(kind.example+" edges", func(t *testing.T) {
						t.Parallel()
						edges(t, kind)
					})
					t.Run(kind.example+" stops", func(t *testing.T) {
						t.Parallel()
						stopsAndStarts(t, kind)
					})
				}
				for name, edit := range edits[operator.name] {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						edit(t)
					})
				}
			})
		})
	}
}

// startOperator runs a kind's operator on the workers for the time of a test.
func startOperator(t *testing.T, name string) {
	t.Helper()
	NewWithT(t).Expect(fleet.StartOperator(context.Background(), name)).To(Succeed())
	t.Cleanup(func() {
		if err := fleet.StopOperator(context.Background(), name); err != nil {
			t.Logf("stop %s: %v", name, err)
		}
	})
}

// runsAsWritten: what a user wrote runs on one worker, is seen on the manager as it runs, and leaves nothing behind.
func runsAsWritten(t *testing.T, kind managedKind) {
	s := newSite(t)
	job := s.sample(kind.example)
	s.leaveKind(job)
	row := s.kindOf(job)
	made := s.create("manager", job)
	by, _, _ := unstructured.NestedString(made.Object, row.ManagedBy...)
	s.Expect(by).To(Equal(kueue.MultiKueueControllerName), "managedBy")

	worker := s.awaitMirrored(job)
	s.Expect(s.read(s, other(worker), job)).To(BeNil(), "on the other worker")
	if kind.serves {
		s.awaitServing(job, worker)
		s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
	} else {
		s.awaitOver(job, kueue.WorkloadFinishedReasonSucceeded)
	}
	s.awaitNothingLeft(job)
	s.expectNoPodEver()
	if !kind.serves {
		over, _ := row.Ended(s.read(s, "manager", job))
		s.Expect(over).To(BeTrue(), "the result stays")
	}
}

// awaitServing waits until Kueue on the manager takes the job for active, by its mirrored status.
func (s *site) awaitServing(job *unstructured.Unstructured, worker string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		original, copied := s.read(g, "manager", job), s.read(g, worker, job)
		g.Expect(copied).NotTo(BeNil())
		g.Expect(statusOf(original)).To(Equal(statusOf(copied)))
		g.Expect(statusOf(original)).To(Or(HaveKeyWithValue("state", "ready"), HaveKeyWithValue("serviceStatus", "Running")))
		generation, found, _ := unstructured.NestedInt64(original.Object, "status", "observedGeneration")
		g.Expect(!found || generation == original.GetGeneration()).To(BeTrue(), "observedGeneration %d of %d", generation, original.GetGeneration())
	}).Should(Succeed(), "%s should serve", job.GetName())
}

// edges: a worker holds somebody else's object of that name; the name is long; the worker is told to delete the job at
// its end; then the job is made anew under the same name.
func edges(t *testing.T, kind managedKind) {
	s := newSite(t)
	job := s.sample(kind.example)
	s.leaveKind(job)
	if kind.longName > 0 {
		job.SetName(longest(job, kind.longName))
	}
	foreign := job.DeepCopy()
	foreign.SetLabels(nil)
	s.Expect(unstructured.SetNestedField(foreign.Object, true, s.kindOf(job).Suspend...)).To(Succeed())
	foreign = s.create("w1", foreign)
	for path, value := range kind.selfDeleting {
		s.Expect(unstructured.SetNestedField(job.Object, value, strings.Split(path, ".")...)).To(Succeed())
	}

	first := s.create("manager", job)
	s.Expect(s.awaitMirroredOn("w2", job)).To(Equal("w2"))
	if !kind.serves {
		s.awaitOver(job, kueue.WorkloadFinishedReasonSucceeded)
		s.awaitGoneOn("w2", job)
	}
	s.Expect(manager().Delete(s.ctx, first, background)).To(Succeed())
	s.awaitGoneOn("manager", job)
	second := s.create("manager", job)
	s.Expect(second.GetUID()).NotTo(Equal(first.GetUID()))
	s.awaitMirroredOn("w2", job)
	s.Eventually(func(g Gomega) {
		copied := s.read(g, "w2", job)
		g.Expect(copied).NotTo(BeNil())
		g.Expect(copied.GetAnnotations()).To(HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, string(second.GetUID())))
	}).Should(Succeed())
	s.Expect(manager().Delete(s.ctx, second, background)).To(Succeed())
	s.awaitGoneOn("w2", job)
	s.Expect(s.read(s, "w1", job)).To(HaveField("GetUID()", foreign.GetUID()), "somebody else's object")
	s.expectNoPodEver()
}

func (s *site) awaitMirroredOn(worker string, job *unstructured.Unstructured) string {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(s.workloadOf(g, job).Status.ClusterName).To(HaveValue(Equal(worker)))
	}).Should(Succeed(), "%s should go to %s", job.GetName(), worker)
	return s.awaitMirrored(job)
}

func (s *site) awaitGoneOn(cluster string, job *unstructured.Unstructured) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		g.Expect(s.read(g, cluster, job)).To(BeNil())
		if cluster != "manager" {
			g.Expect(s.workloads(g, cluster)).To(BeEmpty(), "Workloads")
			g.Expect(s.pods(g, cluster)).To(BeEmpty(), "pods")
		}
	}).Should(Succeed(), "%s should leave %s", job.GetName(), cluster)
}

// stopsAndStarts: drained on the manager, the copy goes, the manager's status says so, and Kueue gives the quota back.
// Then it runs again.
func stopsAndStarts(t *testing.T, kind managedKind) {
	s := newSite(t)
	job := s.sample(kind.example)
	s.leaveKind(job)
	if kind.runOn != nil {
		kind.runOn(s, job)
	} else {
		runOn(job.Object)
	}
	made := s.create("manager", job)
	s.awaitMirrored(job)

	s.setStopPolicy("manager", kueue.HoldAndDrain)
	s.awaitNothingLeft(job)
	s.Eventually(func(g Gomega) {
		g.Expect(meta.IsStatusConditionTrue(s.workloadOf(g, job).Status.Conditions, kueue.WorkloadQuotaReserved)).To(BeFalse(), "QuotaReserved")
		original := s.read(g, "manager", job)
		g.Expect(statusOf(original)).To(Equal(s.kindOf(job).Reflect(original, nil, time.Now())), "the status of one that stopped")
	}).Should(Succeed())

	s.setStopPolicy("manager", kueue.None)
	s.awaitMirrored(job)
	s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
	s.awaitNothingLeft(job)
	s.expectNoPodEver()
}

// runsByTrainingRuntime: the runtime is one of the namespace's own rather than the cluster's.
func runsByTrainingRuntime(t *testing.T) {
	s := newSite(t)
	job := s.sample("trainjob")
	s.leaveKind(job)
	s.ownRuntime(job, func(map[string]any) {})
	s.create("manager", job)
	s.awaitMirrored(job)
	s.awaitOver(job, kueue.WorkloadFinishedReasonSucceeded)
	s.awaitNothingLeft(job)
	s.expectNoPodEver()
}

// ownRuntime gives a TrainJob a TrainingRuntime of its namespace, like the cluster's but for a change.
func (s *site) ownRuntime(job *unstructured.Unstructured, change func(spec map[string]any)) {
	s.t.Helper()
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion(job.GetAPIVersion())
	cluster.SetKind("ClusterTrainingRuntime")
	s.Expect(manager().Get(s.ctx, client.ObjectKey{Name: "torch-distributed"}, cluster)).To(Succeed())
	spec := cluster.Object["spec"].(map[string]any)
	change(spec)
	for _, c := range append([]string{"manager"}, s.workers...) {
		own := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		own.SetAPIVersion(job.GetAPIVersion())
		own.SetKind("TrainingRuntime")
		own.SetNamespace(s.namespace)
		own.SetName("ours")
		own.SetLabels(cluster.GetLabels())
		s.create(c, own.DeepCopy())
	}
	s.Expect(unstructured.SetNestedMap(job.Object, map[string]any{
		"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "ours",
	}, "spec", "runtimeRef")).To(Succeed())
}

// trainJobRunsOn: a TrainJob's pods are as its runtime says.
func trainJobRunsOn(s *site, job *unstructured.Unstructured) {
	s.ownRuntime(job, func(spec map[string]any) { runOn(spec) })
}

// rayJobRunsOn: the playground's Ray heads read from a job's id how long it runs.
func rayJobRunsOn(s *site, job *unstructured.Unstructured) {
	s.Expect(unstructured.SetNestedField(job.Object, "run-for-1h", "spec", "jobId")).To(Succeed())
}

// runOn lets the pods of all templates in an object run longer than any test.
func runOn(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			runOn(element)
		}
	case map[string]any:
		if containers, _, _ := unstructured.NestedSlice(v, "spec", "containers"); containers != nil {
			_ = unstructured.SetNestedField(v, "1h", "metadata", "annotations", playground.RunForAnnotation)
		}
		for _, element := range v {
			runOn(element)
		}
	}
}

// editServeConfig: the copy gets the new config, and the service goes on.
func editServeConfig(t *testing.T) {
	s := newSite(t)
	service := s.sample("rayservice")
	s.leaveKind(service)
	made := s.create("manager", service)
	worker := s.awaitMirrored(service)
	s.awaitServing(service, worker)
	before := s.read(s, worker, service).GetUID()

	config, _, _ := unstructured.NestedString(service.Object, "spec", "serveConfigV2")
	config = strings.Replace(config, "num_replicas: 1", "num_replicas: 2", 1)
	update(s, "manager", service, func(o *unstructured.Unstructured) {
		s.Expect(unstructured.SetNestedField(o.Object, config, "spec", "serveConfigV2")).To(Succeed())
	})
	s.Eventually(func(g Gomega) {
		copied := s.read(g, worker, service)
		g.Expect(copied).NotTo(BeNil())
		g.Expect(copied.GetUID()).To(Equal(before), "the same copy")
		is, _, _ := unstructured.NestedString(copied.Object, "spec", "serveConfigV2")
		g.Expect(is).To(Equal(config))
	}).Should(Succeed())
	s.awaitServing(service, worker)
	s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
	s.awaitNothingLeft(service)
}

// editReplicas: more workers are another request for quota, so Kueue queues the cluster anew, and it comes back with them.
func editReplicas(t *testing.T) {
	s := newSite(t)
	cluster := s.sample("raycluster")
	s.leaveKind(cluster)
	made := s.create("manager", cluster)
	s.awaitServing(cluster, s.awaitMirrored(cluster))
	update(s, "manager", cluster, func(o *unstructured.Unstructured) {
		groups, _, _ := unstructured.NestedSlice(o.Object, "spec", "workerGroupSpecs")
		groups[0].(map[string]any)["replicas"] = int64(2)
		s.Expect(unstructured.SetNestedSlice(o.Object, groups, "spec", "workerGroupSpecs")).To(Succeed())
	})
	s.Eventually(func(g Gomega) {
		workers, _, _ := unstructured.NestedInt64(s.read(g, "manager", cluster).Object, "status", "desiredWorkerReplicas")
		g.Expect(workers).To(BeEquivalentTo(2), "workers, by the manager's status")
	}).Should(Succeed())
	s.awaitServing(cluster, s.awaitMirrored(cluster))
	s.Expect(manager().Delete(s.ctx, made, background)).To(Succeed())
	s.awaitNothingLeft(cluster)
}
