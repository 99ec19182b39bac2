package kinds_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ferry.dev/ferry/internal/kinds"
)

// customExamples are the rows of docs/custom-kinds.md; they have golden files as the built-in kinds have.
var customExamples = []kinds.Kind{pipelineRun, workflow}

var (
	pipelineRun = kinds.Custom(schema.GroupVersionKind{Group: "tekton.dev", Version: "v1", Kind: "PipelineRun"}, kinds.Fields{
		ManagedBy: kinds.Path{"spec", "managedBy"}, Suspend: kinds.Path{"spec", "status"}, Suspended: "PipelineRunPending",
	})
	workflow = kinds.Custom(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}, kinds.Fields{
		ManagedBy: kinds.Path{"metadata", "labels", "workflows.argoproj.io/controller-instanceid"},
		Suspend:   kinds.Path{"spec", "suspend"}, Drop: []kinds.Path{{"spec", "ttlStrategy"}}, Flow: []kinds.Path{{"spec", "shutdown"}},
		PlainStatus: true,
	})
)

func TestCustomKindsComeAfterTheBuiltIn(t *testing.T) {
	g := NewWithT(t)
	rows := kinds.NewTable([]string{"batch/job"}, customExamples...).Rows()
	g.Expect(rows).To(HaveLen(3))
	g.Expect(rows[0].Name()).To(Equal("Job.batch"))
	g.Expect(rows[1].Name()).To(Equal("PipelineRun.tekton.dev"))
	g.Expect(rows[1].Framework).To(Equal("PipelineRun.v1.tekton.dev"))
	g.Expect(rows[2].PlainStatus).To(BeTrue())
}

// TestManagedOfCustomKinds: a label holds no slash, so its value differs.
func TestManagedOfCustomKinds(t *testing.T) {
	const label = "workflows.argoproj.io/controller-instanceid"
	nobodys := kinds.Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Task"}, kinds.Fields{})
	for name, test := range map[string]struct {
		kind   kinds.Kind
		fields map[string]any
		want   bool
		why    string
	}{
		"field":       {pipelineRun, map[string]any{"spec": map[string]any{"managedBy": "kueue.x-k8s.io/multikueue"}}, true, ""},
		"other":       {pipelineRun, map[string]any{"spec": map[string]any{"managedBy": "me"}}, false, `Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "me"`},
		"label":       {workflow, map[string]any{"metadata": map[string]any{"labels": map[string]any{label: "multikueue"}}}, true, ""},
		"other label": {workflow, map[string]any{}, false, `Expecting metadata.labels[` + label + `] to be "multikueue" not ""`},
		"none":        {nobodys, map[string]any{}, true, ""},
		"wrong type":  {pipelineRun, map[string]any{"spec": "text"}, false, `Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not ""`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			managed, why := test.kind.Managed(&unstructured.Unstructured{Object: test.fields})
			g.Expect(managed).To(Equal(test.want))
			g.Expect(why).To(Equal(test.why))
		})
	}
}

func TestEndOfACustomKindIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	done := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Succeeded"}}}
	ended, known := workflow.Ended(done)
	g.Expect(ended).To(BeFalse())
	g.Expect(known).To(BeFalse())
}

func TestEditsOfCustomKindsFlow(t *testing.T) {
	g := NewWithT(t)
	original := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"shutdown": "Stop", "suspend": false, "x": "new"}}}
	current := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": true, "x": "old"}}}
	current.SetAnnotations(map[string]string{kinds.JobAnnotation: "Workflow.argoproj.io/report"})
	want := workflow.Flowed(original, current)
	g.Expect(want.Object["spec"]).To(Equal(map[string]any{"suspend": true, "x": "old", "shutdown": "Stop"}))
	g.Expect(workflow.Flowed(original, want)).To(BeNil())
}
