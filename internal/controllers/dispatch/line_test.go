package dispatch

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/observe"
)

// TestNextInLine: those that wait for a worker, by priority and age, and not more than are wanted.
func TestNextInLine(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	manager := fake.NewClientBuilder().WithScheme(scheme)
	for i, wl := range []struct {
		name     string
		priority int32
		change   func(*kueue.Workload)
	}{
		{"old", 0, nil}, {"young", 0, nil}, {"urgent", 5, nil}, {"least", -1, nil},
		{"assigned", 9, func(wl *kueue.Workload) { wl.Status.ClusterName = new("w1") }},
		{"without-quota", 9, func(wl *kueue.Workload) { wl.Status.Admission = nil }},
		{"over", 9, func(wl *kueue.Workload) {
			wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue}}
		}},
	} {
		obj := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: wl.name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000+i), 0)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: wl.name, Controller: new(true)}},
		}}
		obj.Spec.Priority = new(wl.priority)
		obj.Status.Admission = &kueue.Admission{ClusterQueue: "q"}
		if wl.change != nil {
			wl.change(obj)
		}
		manager.WithObjects(obj)
	}
	r := &Reconciler{Observer: &observe.Observer{Manager: manager.Build()}}
	var names []string
	for _, ref := range r.NextInLine(t.Context(), 3) {
		names = append(names, ref.Name)
	}
	if want := []string{"urgent", "old", "young"}; !slices.Equal(names, want) {
		t.Errorf("%v instead of %v", names, want)
	}
}
