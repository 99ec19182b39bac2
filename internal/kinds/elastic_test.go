package kinds_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

const elasticJobs = "testdata/batch/Job/copy/elastic-of-its-slice"

// slice is a slice of the example in testdata.
func slice(t *testing.T, name string, pods int32) *kueue.Workload {
	t.Helper()
	wl := workloadOf(t, readObject(t, elasticJobs+".manager.yaml"), elasticJobs+".workload.yaml")
	wl.Name, wl.Spec.PodSets[0].Count = name, pods
	return wl
}

func TestSlicedFollowsTheSlice(t *testing.T) {
	g := NewWithT(t)
	kind := kinds.NewTable(kinds.Frameworks()).ByName("Job.batch")
	original := readObject(t, elasticJobs+".manager.yaml")
	copied := kind.Project(original, slice(t, "first", 2), marks)
	g.Expect(kind.Sliced(copied, original, slice(t, "first", 2), marks.Reservation)).To(BeNil(), "it is so already")

	grown := kind.Sliced(copied, original, slice(t, "second", 4), "1-1")
	g.Expect(kinds.LinkedTo(grown)).To(Equal("second"))
	g.Expect(grown.GetAnnotations()).To(HaveKeyWithValue(kinds.ReservationAnnotation, "1-1"))
	g.Expect(grown.GetLabels()).To(HaveKeyWithValue(kueue.MultiKueueOriginLabel, marks.Origin))
	g.Expect(size(grown)).To(BeEquivalentTo(4))
	g.Expect(size(copied)).To(BeEquivalentTo(2), "the input is left alone")
	g.Expect(kind.Sliced(grown, original, slice(t, "second", 4), "1-1")).To(BeNil(), "once is enough")

	long := strings.Repeat("long-name-", 10)
	far := kind.Sliced(grown, original, slice(t, long, 4), "1-1")
	g.Expect(kinds.LinkedTo(far)).To(Equal(long), "the annotation takes the label's place")
	g.Expect(kinds.LinkedTo(kind.Sliced(far, original, slice(t, "third", 4), "1-1"))).To(Equal("third"))
}

func size(job *unstructured.Unstructured) int64 {
	pods, _, _ := unstructured.NestedInt64(job.Object, "spec", "parallelism")
	return pods
}

func TestSizeOfAnElasticWorkload(t *testing.T) {
	g := NewWithT(t)
	two, four := slice(t, "wl", 2), slice(t, "wl", 4)
	g.Expect(kinds.SpecHash(two)).To(Equal(kinds.SpecHash(four)), "its size is no change of its spec")
	g.Expect(kinds.Outgrown(two, four)).To(BeTrue())
	g.Expect(kinds.Outgrown(four, two)).To(BeFalse())
	g.Expect(two.Spec.PodSets[0].Count).To(BeEquivalentTo(2), "the hash leaves the Workload alone")
	two.Annotations, four.Annotations = nil, nil
	g.Expect(kinds.SpecHash(two)).NotTo(Equal(kinds.SpecHash(four)), "unless it is not elastic")
}

// TestReplacementOfASlice: Kueue on the worker is to find the slice that a copy replaces, and never to compare the first with its job.
func TestReplacementOfASlice(t *testing.T) {
	g := NewWithT(t)
	const key = "kueue.x-k8s.io/workload-slice-replacement-for"
	ref := kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}
	next := slice(t, "next", 4)
	next.Annotations[key] = "team-a/first"
	g.Expect(kinds.Replaces(next)).To(Equal("first"))
	g.Expect(kinds.ProjectWorkload(next, ref, marks).Annotations).To(HaveKeyWithValue(key, "team-a/first"))
	first := slice(t, "first", 2)
	g.Expect(kinds.ProjectWorkload(first, ref, marks).Annotations[key]).To(And(Not(BeEmpty()), Not(ContainSubstring("/"))))
	g.Expect(kinds.Replaces(first)).To(BeEmpty())
	first.Annotations = nil
	g.Expect(kinds.ProjectWorkload(first, ref, marks).Annotations).NotTo(HaveKey(key), "a Workload that is not elastic")
}

// TestSizeOfARayGroup: a slice counts the hosts of all replicas. How they are divided the job says, as long as the slice is of it.
func TestSizeOfARayGroup(t *testing.T) {
	type size struct{ replicas, hosts any }
	group := func(s size) map[string]any {
		g := map[string]any{"groupName": "Small"}
		for field, n := range map[string]any{"replicas": s.replicas, "numOfHosts": s.hosts} {
			if n != nil {
				g[field] = n
			}
		}
		return g
	}
	for name, c := range map[string]struct {
		original, there size
		pods            int32
		want            size
	}{
		"more replicas":                  {size{int64(4), int64(1)}, size{int64(2), int64(1)}, 4, size{int64(4), int64(1)}},
		"more hosts, as many replicas":   {size{int64(2), int64(2)}, size{int64(2), int64(1)}, 4, size{int64(2), int64(2)}},
		"fewer hosts, as many replicas":  {size{int64(2), int64(1)}, size{int64(2), int64(3)}, 2, size{int64(2), int64(1)}},
		"the job wants other hosts soon": {size{int64(2), int64(4)}, size{int64(1), int64(2)}, 4, size{int64(2), int64(2)}},
		"hosts that are not said":        {size{int64(3), nil}, size{int64(1), nil}, 3, size{int64(3), nil}},
		"hosts that are not said here":   {size{int64(3), nil}, size{int64(1), int64(1)}, 3, size{int64(3), int64(1)}},
		"replicas that are not said":     {size{nil, int64(2)}, size{int64(2), int64(2)}, 2, size{int64(1), int64(2)}},
		"none":                           {size{int64(0), int64(2)}, size{int64(2), int64(2)}, 0, size{int64(0), int64(2)}},
	} {
		for kind, path := range map[string][]string{
			"RayCluster.ray.io": {"spec", "workerGroupSpecs"}, "RayJob.ray.io": {"spec", "rayClusterSpec", "workerGroupSpecs"},
			"RayService.ray.io": {"spec", "rayClusterConfig", "workerGroupSpecs"},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				row := kinds.NewTable(kinds.Frameworks()).ByName(kind)
				object := func(s size) *unstructured.Unstructured {
					o := &unstructured.Unstructured{Object: map[string]any{}}
					o.SetGroupVersionKind(row.GVK)
					g.Expect(unstructured.SetNestedSlice(o.Object, []any{group(s)}, path...)).To(Succeed())
					return o
				}
				wl := workload("next")
				wl.Spec.PodSets = []kueue.PodSet{{Name: "small", Count: c.pods}}
				sliced := row.Sliced(row.Project(object(c.there), workload("w"), marks), object(c.original), wl, "1-1")
				groups, _, _ := unstructured.NestedSlice(sliced.Object, path...)
				g.Expect(groups).To(Equal([]any{group(c.want)}))
			})
		}
	}
}
