// Package customjobs is a small operator of two kinds of jobs that Kueue does not know, for tests: it makes their Workloads, as tekton-kueue does for PipelineRuns, and "runs" them for a while.
package customjobs

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/build"
	"ferry.dev/ferry/playground/manifest"
)

// Annotations on a job that say what becomes of it.
const (
	// RunsFor is how long it runs, a Go duration; 1s without it.
	RunsFor = "example.com/runs-for"
	// CPU is what it asks for; 1 without it.
	CPU = "example.com/cpu"
	// Fails, with any value, lets it fail.
	Fails = "example.com/fails"
)

// Kind is how the jobs of a CRD look.
type Kind struct {
	GVK      schema.GroupVersionKind
	Resource string
	// plainStatus: the status is no subresource.
	plainStatus bool
	// suspend is set to suspended while the job may not run.
	suspend   []string
	suspended any
	// elsewhere tells that another controller runs the job.
	elsewhere func(job *unstructured.Unstructured) bool
	// status is that of a job that started, and perhaps ended.
	status func(p Progress) map[string]any
	// read is the inverse of status.
	read func(job *unstructured.Unstructured) Progress
	// finishesElsewhere: the Workload of a job that runs elsewhere is finished by this operator too.
	finishesElsewhere bool
}

// Progress is how far a job is. Ended is zero while it runs, Started before it does.
type Progress struct {
	Started, Ended time.Time
	Failed         bool
}

// Read tells how far a job is by its status.
func (k *Kind) Read(job *unstructured.Unstructured) Progress { return k.read(job) }

// PipelineRun is Tekton's, with Tekton's own CRD: field managedBy, subresource status, suspended by a word.
var PipelineRun = &Kind{
	GVK:      schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "PipelineRun"},
	Resource: "pipelineruns",
	suspend:  []string{"spec", "status"}, suspended: "PipelineRunPending",
	elsewhere: func(job *unstructured.Unstructured) bool {
		by, _, _ := unstructured.NestedString(job.Object, "spec", "managedBy")
		return by == kueue.MultiKueueControllerName
	},
	status: pipelineRunStatus, read: readPipelineRun,
	finishesElsewhere: true,
}

// InstanceID is the label by which one of several workflow controllers knows its own.
const InstanceID = "workflows.argoproj.io/controller-instanceid"

// Workflow is like Argo's: another controller's label, a status that is a field like any other.
var Workflow = &Kind{
	GVK:         schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"},
	Resource:    "workflows",
	plainStatus: true,
	suspend:     []string{"spec", "suspend"}, suspended: true,
	elsewhere: func(job *unstructured.Unstructured) bool { return job.GetLabels()[InstanceID] != "" },
	status:    workflowStatus, read: readWorkflow,
}

func pipelineRunStatus(p Progress) map[string]any {
	condition := map[string]any{"type": "Succeeded", "status": "Unknown", "reason": "Running"}
	status := map[string]any{"startTime": stamp(p.Started), "conditions": []any{condition}}
	if !p.Ended.IsZero() {
		status["completionTime"] = stamp(p.Ended)
		condition["status"], condition["reason"] = "True", "Succeeded"
		if p.Failed {
			condition["status"], condition["reason"] = "False", "Failed"
		}
	}
	return status
}

func readPipelineRun(job *unstructured.Unstructured) Progress {
	p := Progress{Started: timeAt(job, "status", "startTime"), Ended: timeAt(job, "status", "completionTime")}
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		p.Failed = p.Failed || condition["status"] == "False"
	}
	return p
}

func workflowStatus(p Progress) map[string]any {
	status := map[string]any{"phase": "Running", "startedAt": stamp(p.Started)}
	if !p.Ended.IsZero() {
		status["phase"], status["finishedAt"] = "Succeeded", stamp(p.Ended)
		if p.Failed {
			status["phase"] = "Failed"
		}
	}
	return status
}

func readWorkflow(job *unstructured.Unstructured) Progress {
	phase, _, _ := unstructured.NestedString(job.Object, "status", "phase")
	return Progress{Started: timeAt(job, "status", "startedAt"), Ended: timeAt(job, "status", "finishedAt"), Failed: phase == "Failed"}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func timeAt(job *unstructured.Unstructured, path ...string) time.Time {
	text, _, _ := unstructured.NestedString(job.Object, path...)
	at, _ := time.Parse(time.RFC3339, text)
	return at
}

// New is a job of the kind in a LocalQueue.
func (k *Kind) New(namespace, name, queue string, annotations map[string]string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if k == PipelineRun {
		job.Object["spec"] = map[string]any{"pipelineRef": map[string]any{"name": "build"}}
	}
	job.SetGroupVersionKind(k.GVK)
	job.SetNamespace(namespace)
	job.SetName(name)
	job.SetLabels(map[string]string{queueLabel: queue})
	job.SetAnnotations(annotations)
	return job
}

//go:embed workflows.yaml
var workflows []byte

// Definition is the kind's CRD.
func (k *Kind) Definition(ctx context.Context) (*unstructured.Unstructured, error) {
	if k == Workflow {
		return only(manifest.Parse(workflows))
	}
	root, err := build.FindRoot(".")
	if err != nil {
		return nil, err
	}
	dir, err := (&build.Builder{Root: root}).TektonDir(ctx)
	if err != nil {
		return nil, err
	}
	crd, err := only(manifest.File(filepath.Join(dir, "config", "300-crds", "300-pipelinerun.yaml")))
	if err != nil {
		return nil, err
	}
	// Tekton's webhook would convert between versions that nobody uses here.
	unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
	return crd, nil
}

func only(objects []*unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if err == nil && len(objects) != 1 {
		err = fmt.Errorf("%d objects where one CRD was expected", len(objects))
	}
	if err != nil {
		return nil, err
	}
	return objects[0], nil
}
