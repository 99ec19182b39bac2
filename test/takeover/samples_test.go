package takeover_test

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/test/customjobs"
	"ferry.dev/ferry/test/fixtures"
)

// sample is what users submit of one kind.
type sample struct {
	// example is its file in examples/kinds; what has none is made by build.
	example string
	build   func(namespace string) (*unstructured.Unstructured, error)
	// workloads is how many Workloads Kueue makes for it; 0 stands for one.
	workloads int
	// oneByOne: stock MultiKueue offers the second of its Workloads once the first has a worker.
	oneByOne bool
	// serves: it runs until it is deleted.
	serves bool
	// refused: stock MultiKueue 0.19 has an adapter for the kind, but Kueue on the worker refuses what it makes.
	refused bool
}

// samples has a row for each kind of docs/kinds.md. CronJobs are not among them: their Jobs are.
var samples = []sample{
	{build: batchJob},
	{example: "jobset"},
	{example: "pytorchjob"},
	{example: "tfjob"},
	{example: "xgboostjob"},
	{example: "paddlejob"},
	{example: "jaxjob", refused: true},
	{example: "mpijob"},
	{example: "trainjob"},
	{example: "rayjob"},
	{example: "raycluster", serves: true},
	{example: "rayservice", serves: true},
	{example: "appwrapper"},
	{example: "pod"},
	{example: "podgroup"},
	{example: "deployment", workloads: 3, serves: true},
	{example: "statefulset", serves: true},
	{example: "leaderworkerset", workloads: 2, oneByOne: true, serves: true},
	{build: pipelineRun},
}

func batchJob(namespace string) (*unstructured.Unstructured, error) {
	job := fixtures.Job(namespace, "job", fixtures.CPU("500m"))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{Object: object}
	made.SetAPIVersion("batch/v1")
	made.SetKind("Job")
	return made, nil
}

// pipelineRun is of a custom kind, which nothing on the manager leaves to MultiKueue but its user.
func pipelineRun(namespace string) (*unstructured.Unstructured, error) {
	run := customjobs.PipelineRun.New(namespace, "build", fixtures.Queue, map[string]string{customjobs.RunsFor: longer.String()})
	return run, unstructured.SetNestedField(run.Object, kueue.MultiKueueControllerName, "spec", "managedBy")
}

// read gives the sample's objects, for a namespace.
func (s sample) read(namespace string) ([]*unstructured.Unstructured, error) {
	if s.build != nil {
		made, err := s.build(namespace)
		return []*unstructured.Unstructured{made}, err
	}
	objects, err := manifest.File(filepath.Join("..", "..", "examples", "kinds", s.example+".yaml"))
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels[fixtures.QueueLabel] == "" {
			return nil, fmt.Errorf("%s %s has no queue", o.GetKind(), o.GetName())
		}
		labels[fixtures.QueueLabel] = fixtures.Queue
		o.SetLabels(labels)
		o.SetNamespace(namespace)
	}
	return objects, nil
}

// kindsOf are the kinds of what samples make on workers, pods among them.
func kindsOf(all []sample) ([]schema.GroupVersionKind, error) {
	found := []schema.GroupVersionKind{podGVK}
	for _, s := range all {
		objects, err := s.read("any")
		if err != nil {
			return nil, err
		}
		if gvk := objects[0].GroupVersionKind(); gvk != podGVK {
			found = append(found, gvk)
		}
	}
	return found, nil
}

var podGVK = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
