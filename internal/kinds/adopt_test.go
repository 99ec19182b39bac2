package kinds_test

import (
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// TestAdoptedLikeMade: of every kind, MultiKueue's copy with the marks on is known as the copy of its job, and nothing
// but its annotations was touched; no edit follows by itself.
func TestAdoptedLikeMade(t *testing.T) {
	tried := 0
	for _, k := range kinds.All() {
		files, err := filepath.Glob(filepath.Join("testdata", k.GVK.Group, "*", "copy", "*.manager.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			job := readObject(t, file)
			if kinds.RefOf(job).Kind != k.Name() || k.Unlinked {
				continue
			}
			tried++
			t.Run(k.Name()+"/"+filepath.Base(file), func(t *testing.T) { adoptOne(t, &k, job) })
		}
	}
	if tried < 10 {
		t.Errorf("only %d jobs were tried", tried)
	}
}

func adoptOne(t *testing.T, k *kinds.Kind, job *unstructured.Unstructured) {
	g := NewWithT(t)
	job.SetUID("job-uid")
	job.SetGeneration(3)
	wl := workload("w")
	c := likeMultiKueues(k.Project(job, wl, marks))
	if k.Many() {
		c.SetAnnotations(map[string]string{kueue.MultiKueueOriginUIDAnnotation: "job-uid"}) // MultiKueue notes it for these
	}
	g.Expect(kinds.Unmarked(c)).To(BeTrue())
	g.Expect(k.MadeFor(c, job, []*kueue.Workload{wl})).To(BeTrue(), "its job's")
	other := job.DeepCopy()
	other.SetUID("another-uid")
	g.Expect(k.MadeFor(c, other, []*kueue.Workload{workload("other")})).To(BeFalse(), "not that of one made anew")

	got := k.Adopted(c, job, marks)
	g.Expect(kinds.IsCopyOf(got, kinds.RefOf(job))).To(BeTrue())
	g.Expect(got.GetAnnotations()).To(HaveKeyWithValue(kueue.MultiKueueOriginUIDAnnotation, "job-uid"))
	g.Expect(got.GetAnnotations()).To(HaveKeyWithValue(kinds.ReservationAnnotation, marks.Reservation))
	g.Expect(got.Object["spec"]).To(Equal(c.Object["spec"]), "the spec stays as it is")
	g.Expect(got.GetLabels()).To(Equal(c.GetLabels()))
	if k.Pods {
		g.Expect(k.Flowed(job, got)).To(BeNil(), "a set's template stays as it is")
		g.Expect(k.MarksPods(got)).To(BeFalse())
	}
}

// likeMultiKueues is a copy as MultiKueue makes it: the label of its origin, the link, and nothing of Ferry's.
func likeMultiKueues(c *unstructured.Unstructured) *unstructured.Unstructured {
	c = c.DeepCopy()
	clean := func(obj metav1.Object) {
		kept := map[string]string{}
		for name, value := range obj.GetAnnotations() {
			if !strings.HasPrefix(name, "ferry.dev/") && name != kueue.MultiKueueOriginUIDAnnotation {
				kept[name] = value
			}
		}
		obj.SetAnnotations(kept)
	}
	clean(c)
	for _, path := range [][]string{{"spec", "template"}, {"spec", "leaderWorkerTemplate", "workerTemplate"}, {"spec", "leaderWorkerTemplate", "leaderTemplate"}} {
		at, found, _ := unstructured.NestedMap(c.Object, path...)
		if !found {
			continue
		}
		template := &unstructured.Unstructured{Object: at}
		clean(template)
		_ = unstructured.SetNestedMap(c.Object, at, path...)
	}
	return c
}

// TestEditOfAnAdoptedSet: an edit that leaves the template alone restarts no pod.
func TestEditOfAnAdoptedSet(t *testing.T) {
	g := NewWithT(t)
	k := kinds.NewTable([]string{"statefulset"}).ByName("StatefulSet.apps")
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{"image": "a"}}
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2), "template": template}}}
	set.SetGroupVersionKind(k.GVK)
	set.SetName("web")
	set.SetGeneration(1)
	c := set.DeepCopy()
	c.SetLabels(map[string]string{kueue.MultiKueueOriginLabel: marks.Origin, kinds.PrebuiltWorkload: "w"})
	c = k.Adopted(c, set, marks)

	set.SetGeneration(2)
	_ = unstructured.SetNestedField(set.Object, int64(0), "spec", "replicas")
	flowed := k.Flowed(set, c)
	g.Expect(flowed).NotTo(BeNil())
	g.Expect(k.MarksPods(flowed)).To(BeFalse(), "only the replicas changed")

	set.SetGeneration(3)
	_ = unstructured.SetNestedField(set.Object, "b", "spec", "template", "spec", "image")
	g.Expect(k.MarksPods(k.Flowed(set, flowed))).To(BeTrue(), "a rollout makes pods with marks")
}

func TestAdoptedWorkload(t *testing.T) {
	g := NewWithT(t)
	wl := workload("w")
	ref := kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}
	made := kinds.ProjectWorkload(wl, ref, marks)
	c := made.DeepCopy()
	c.Annotations = nil
	g.Expect(kinds.AdoptedWorkload(c, wl, ref, marks)).To(Equal(made))
	c.Spec.PodSets[0].Count++
	g.Expect(kinds.SameSpec(kinds.AdoptedWorkload(c, wl, ref, marks), wl)).To(BeFalse(), "MultiKueue's copy of an earlier spec")
}
