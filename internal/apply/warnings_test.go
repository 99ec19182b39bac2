package apply

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestIsAbout: an event does not say whose its object is, so names tell, and the time.
func TestIsAbout(t *testing.T) {
	made := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	gvk := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	job := func(name string) *unstructured.Unstructured {
		j := &unstructured.Unstructured{}
		j.SetGroupVersionKind(gvk)
		j.SetNamespace("team-a")
		j.SetName(name)
		j.SetUID(types.UID(name))
		j.SetCreationTimestamp(metav1.NewTime(made))
		return j
	}
	worker := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(job("train-2")).Build()
	for name, test := range map[string]struct {
		kind, name, uid string
		after           time.Duration
		want            bool
	}{
		"the job":                         {"Job", "train", "train", 0, true},
		"one of its name before it":       {"Job", "train", "another", -time.Hour, false},
		"its pod":                         {"Pod", "train-x7k2p", "p", time.Second, true},
		"its pod with an index":           {"Pod", "train-0-x7k2p", "p", time.Second, true},
		"what it is made of":              {"Job", "train-workers-0", "p", time.Second, true},
		"a pod of an earlier one":         {"Pod", "train-x7k2p", "p", -time.Second, false},
		"a pod of one with a longer name": {"Pod", "train-2-x7k2p", "p", time.Second, false},
		"the pods of others":              {"Pod", "trainer-x7k2p", "p", time.Second, false},
		"Kueue's words about Workloads":   {"Workload", "train-x", "p", time.Second, false},
		"one with a longer name itself":   {"Job", "train-2", "train-2", time.Second, false},
	} {
		e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: test.kind, Name: test.name, UID: types.UID(test.uid)}}
		got := isAbout(t.Context(), worker, e, made.Add(test.after), []*unstructured.Unstructured{job("train")})
		NewWithT(t).Expect(got).To(Equal(test.want), name)
	}
}
