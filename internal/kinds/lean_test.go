package kinds_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// TestLeanCopy: what is left out of a cached copy changes no comparison with the manager's Workload.
func TestLeanCopy(t *testing.T) {
	elastic := func(wl *kueue.Workload) { wl.Annotations = map[string]string{"kueue.x-k8s.io/elastic-job": "true"} }
	for name, test := range map[string]struct {
		change func(*kueue.Workload)
		mark   string
		pods   int
		spec   bool
	}{
		"plain":                     {change: func(*kueue.Workload) {}},
		"elastic":                   {change: elastic, pods: 1},
		"marked by another build":   {change: func(*kueue.Workload) {}, mark: "another", pods: 1, spec: true},
		"changed by somebody there": {change: func(*kueue.Workload) {}, mark: "0123", pods: 1, spec: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wl := workload("w", test.change, func(wl *kueue.Workload) { wl.Spec.PodSets[0].Count = 3 })
			wl.Spec.PodSets[0].Template.Spec.ServiceAccountName = "trainer"
			c := kinds.ProjectWorkload(wl, kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}, marks)
			if test.mark != "" {
				c.Annotations[kinds.SpecHashAnnotation] = test.mark
			}
			before := c.DeepCopy()
			kinds.LeanCopy("another", c)
			g.Expect(c.ObjectMeta).To(Equal(before.ObjectMeta))
			kinds.LeanCopy(marks.Worker, c)
			g.Expect(c.Annotations).NotTo(HaveKey(kinds.WorkerAnnotation), "whoever has the copy knows where it is from")
			g.Expect(c.Spec.PodSets).To(HaveLen(test.pods))
			if test.spec {
				g.Expect(c.Spec).To(Equal(before.Spec))
			} else if test.pods > 0 {
				g.Expect(c.Spec.PodSets[0]).To(Equal(kueue.PodSet{Name: wl.Spec.PodSets[0].Name, Count: 3}))
			}
			more := wl.DeepCopy()
			more.Spec.PodSets[0].Count++
			for _, now := range []*kueue.Workload{wl, more} {
				g.Expect(kinds.Outgrown(c, now)).To(Equal(kinds.Outgrown(before, now)))
				g.Expect(kinds.Outgrown(now, c)).To(Equal(kinds.Outgrown(now, before)))
			}
		})
	}
}

// TestLeanWorkload: one that is finished keeps what it was of, and nothing that only a copy needs.
func TestLeanWorkload(t *testing.T) {
	for _, finished := range []bool{false, true} {
		g := NewWithT(t)
		wl := workload("w", func(wl *kueue.Workload) { wl.Spec.PodSets[0].Count = 3 })
		wl.Spec.PodSets[0].Template.Spec.ServiceAccountName = "trainer"
		if finished {
			meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		}
		before := wl.DeepCopy()
		kinds.LeanWorkload(wl)
		if finished {
			g.Expect(wl.Spec.PodSets).To(Equal([]kueue.PodSet{{Name: before.Spec.PodSets[0].Name, Count: 3}}))
			wl.Spec.PodSets = before.Spec.PodSets
		}
		g.Expect(wl).To(Equal(before))
	}
}

// TestLeanSlice: a slice that was replaced keeps the pods that the next one is made like.
func TestLeanSlice(t *testing.T) {
	g := NewWithT(t)
	slice := workload("w", func(wl *kueue.Workload) { wl.Annotations = map[string]string{"kueue.x-k8s.io/elastic-job": "true"} })
	slice.Spec.PodSets[0].Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	meta.SetStatusCondition(&slice.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: kueue.WorkloadSliceReplaced})
	next := slice.DeepCopy()
	template := &next.Spec.PodSets[0].Template
	template.Labels = map[string]string{"kueue.x-k8s.io/podset": string(next.Spec.PodSets[0].Name)} // Kueue has started it
	want := kinds.AsSubmitted(next, []*kueue.Workload{slice})
	g.Expect(want).NotTo(Equal(next))
	kinds.LeanWorkload(slice)
	g.Expect(equality.Semantic.DeepEqual(kinds.AsSubmitted(next, []*kueue.Workload{slice}), want)).To(BeTrue())
}

// TestLeanJobs: a job is kept whole as soon as it may be dispatched.
func TestLeanJobs(t *testing.T) {
	table := kinds.NewTable([]string{"batch/job", "statefulset"})
	queue, mine := map[string]string{"kueue.x-k8s.io/queue-name": "main"}, "kueue.x-k8s.io/multikueue"
	for name, test := range map[string]struct {
		kind      string
		labels    map[string]string
		managedBy string
		whole     bool
	}{
		"nobody's":                {kind: "Job"},
		"another controller's":    {kind: "Job", managedBy: "example.com/other"},
		"in a queue":              {kind: "Job", labels: queue, whole: true},
		"left to MultiKueue":      {kind: "Job", managedBy: mine, whole: true},
		"of a kind that is gated": {kind: "StatefulSet", whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"ready": int64(1)}}}
			job.SetAPIVersion(map[string]string{"Job": "batch/v1", "StatefulSet": "apps/v1"}[test.kind])
			job.SetKind(test.kind)
			job.SetNamespace("team-a")
			job.SetName("train")
			job.SetUID("u")
			job.SetResourceVersion("7")
			job.SetLabels(test.labels)
			job.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "x"})
			if test.managedBy != "" {
				g.Expect(unstructured.SetNestedField(job.Object, test.managedBy, "spec", "managedBy")).To(Succeed())
			}
			before := job.DeepCopy()
			table.Lean(job)
			g.Expect(kinds.RefOf(job)).To(Equal(kinds.RefOf(before)))
			g.Expect([]any{job.GetUID(), job.GetResourceVersion()}).To(Equal([]any{before.GetUID(), before.GetResourceVersion()}))
			if test.whole {
				g.Expect(job.Object["spec"]).To(Equal(before.Object["spec"]))
				g.Expect(job.GetAnnotations()).To(Equal(map[string]string{"mine": "x"}))
				g.Expect(job.GetLabels()).To(Equal(before.GetLabels()))
			} else {
				g.Expect(job.Object).To(HaveLen(3), "apiVersion, kind and metadata")
			}
		})
	}
}
