package kinds_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// TestPartialAdmission: a worker is asked for as many pods as the manager has quota for, where the job can do with less.
func TestPartialAdmission(t *testing.T) {
	row := kinds.NewTable([]string{"batch/job"}).ByName("Job.batch")
	for name, c := range map[string]struct {
		least, granted    *int32
		sync              string
		pods, completions int64
	}{
		"all of it":                   {new(int32(1)), new(int32(4)), "", 4, 4},
		"less":                        {new(int32(1)), new(int32(2)), "", 2, 4},
		"less, and less to do":        {new(int32(1)), new(int32(2)), "true", 2, 2},
		"no quota yet":                {new(int32(1)), nil, "", 4, 4},
		"a job that needs all":        {nil, new(int32(4)), "", 4, 4},
		"Kueue's word without a need": {nil, new(int32(2)), "", 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wl := workload("w")
			wl.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 4, MinCount: c.least}}
			wl.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: c.granted}}}
			ref, marks := kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}, kinds.Marks{Origin: "m", Worker: "w1", Reservation: "0-1"}
			copied := kinds.ProjectWorkload(wl, ref, marks)
			g.Expect(copied.Spec.PodSets[0].Count).To(BeEquivalentTo(c.pods))
			g.Expect(copied.Spec.PodSets[0].MinCount).To(Equal(c.least), "the worker may go lower still")
			g.Expect(kinds.SameSpec(copied, wl)).To(BeTrue())
			copied.Annotations[kinds.SpecHashAnnotation] = "another build's"
			g.Expect(kinds.SameSpec(copied, wl)).To(BeTrue(), "by the specs themselves")

			job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parallelism": int64(4), "completions": int64(4), "template": map[string]any{}}}}
			job.SetGroupVersionKind(row.GVK)
			job.SetNamespace("team-a")
			job.SetName("train")
			job.SetAnnotations(map[string]string{"kueue.x-k8s.io/job-completions-equal-parallelism": c.sync})
			out := row.Project(job, wl, marks)
			pods, _, _ := unstructured.NestedInt64(out.Object, "spec", "parallelism")
			completions, _, _ := unstructured.NestedInt64(out.Object, "spec", "completions")
			g.Expect([]int64{pods, completions}).To(Equal([]int64{c.pods, c.completions}))
		})
	}
}
