package kinds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// TestMadeByKueue: a job's Workloads are those that Kueue made for it, whatever others name it as their owner. The names are Kueue's.
func TestMadeByKueue(t *testing.T) {
	long := strings.Repeat("t", 70)
	elastic := func(job *unstructured.Unstructured) {
		job.SetAnnotations(map[string]string{"kueue.x-k8s.io/elastic-job": "true"})
		job.SetGeneration(2)
	}
	linked := func(job *unstructured.Unstructured) { job.SetLabels(map[string]string{kinds.PrebuiltWorkload: "mine"}) }
	grouped := func(job *unstructured.Unstructured) {
		job.SetName("a")
		job.SetLabels(map[string]string{"kueue.x-k8s.io/pod-group-name": "train"})
	}
	type change = func(*unstructured.Unstructured)
	for name, test := range map[string]struct {
		kind   string
		change change
		// has are the Workloads, the oldest first; one of a replica as "index:name".
		has, want []string
	}{
		"one":                                {"Job.batch", nil, []string{"job-train-1b29a"}, []string{"job-train-1b29a"}},
		"another beside it":                  {"Job.batch", nil, []string{"other", "job-train-1b29a", "job-train-xxxxx"}, []string{"job-train-1b29a"}},
		"cut to the length of a label":       {"Job.batch", func(job *unstructured.Unstructured) { job.SetName(long) }, []string{"a", "job-" + strings.Repeat("t", 53) + "-c3911"}, []string{"job-" + strings.Repeat("t", 53) + "-c3911"}},
		"by names that we do not know":       {"Job.batch", nil, []string{"first", "second"}, []string{"first"}},
		"the one that the job names":         {"Job.batch", linked, []string{"other", "job-train-1b29a", "mine"}, []string{"mine"}},
		"and no other":                       {"Job.batch", linked, []string{"other"}, nil},
		"slices, also one not seen edited":   {"Job.batch", elastic, []string{"other", "job-train-5f7f7"}, []string{"job-train-5f7f7"}},
		"a pod":                              {"Pod", nil, []string{"other", "pod-train-4f554"}, []string{"pod-train-4f554"}},
		"a group's is called like the group": {"PodGroup", grouped, []string{"other", "train"}, []string{"train"}},
		"a set's replicas": {"LeaderWorkerSet.leaderworkerset.x-k8s.io", nil, []string{"0:other", "0:leaderworkerset-train-0-289f9", "1:leaderworkerset-train-1-c109d", "leaderworkerset-train-2-c109d"},
			[]string{"leaderworkerset-train-0-289f9", "leaderworkerset-train-1-c109d"}},
		"a set's by names that we do not know": {"LeaderWorkerSet.leaderworkerset.x-k8s.io", nil, []string{"0:a", "1:b"}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind := kinds.NewTable(kinds.Frameworks()).ByName(test.kind)
			job := &unstructured.Unstructured{Object: map[string]any{}}
			job.SetGroupVersionKind(kind.GVK)
			job.SetName("train")
			job.SetUID("job-uid")
			if test.change != nil {
				test.change(job)
			}
			var wls []*kueue.Workload
			for i, name := range test.has {
				index, after, found := strings.Cut(name, ":")
				wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(time.Duration(i) * time.Second))}}
				if found {
					wl.Name, wl.Annotations = after, map[string]string{"kueue.x-k8s.io/component-workload-index": index}
				}
				wl.OwnerReferences = []metav1.OwnerReference{{UID: "job-uid"}}
				wls = append(wls, wl)
			}
			stranger := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "job-train-1b29a", OwnerReferences: []metav1.OwnerReference{{UID: "an earlier job"}}}}
			var got []string
			for _, wl := range kind.Made(append([]*kueue.Workload{stranger}, wls...), []*unstructured.Unstructured{job}) {
				got = append(got, wl.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if all := kind.Made(wls, nil); fmt.Sprint(all) != fmt.Sprint(wls) {
				t.Errorf("of a job that is gone: %v", all)
			}
		})
	}
}
