package app

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/controllers/dispatch"
	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
)

// TestAWorkersConnectionConcernsItsJobsAndThoseThatWait: what other workers run is not decided about anew.
func TestAWorkersConnectionConcernsItsJobsAndThoseThatWait(t *testing.T) {
	manager := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(
		workloadOf("waits", ""), workloadOf("here", "w1"), workloadOf("elsewhere", "w2"), workloadOf("over", "", kueue.WorkloadFinished),
	).Build()
	r := &dispatch.Reconciler{Observer: &observe.Observer{Manager: manager}}
	if got := names(r.Concerned(t.Context(), "w1")); !slices.Equal(got, []string{"here", "waits"}) {
		t.Errorf("decided about anew are %v", got)
	}
}

// TestANameOfNoJobIsNotDecidedAbout: a worker may hold any number of objects that have nothing to do with the manager.
func TestANameOfNoJobIsNotDecidedAbout(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}}
	w := &wiring{in: &inlet.Inlet[kinds.Ref]{}, log: logr.Discard(), observer: &observe.Observer{
		Manager: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(job).Build(), Kinds: kinds.NewTable([]string{"batch/job"}),
	}}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[kinds.Ref]())
	defer queue.ShutDown()
	if err := w.in.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"theirs", "train", "other"} {
		holder := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		holder.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
		w.changed("w1", holder)
	}
	if queue.Len() != 1 {
		t.Fatalf("%d jobs are decided about, and one was submitted", queue.Len())
	}
	if ref, _ := queue.Get(); ref.Name != "train" {
		t.Errorf("decided about is %s", ref)
	}
}

// workloadOf is the Workload of a Job, perhaps with a worker, and with conditions that are true.
func workloadOf(job, worker string, conditions ...string) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "job-" + job,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job)}},
	}}
	if worker != "" {
		wl.Status.ClusterName = &worker
	}
	for _, c := range conditions {
		wl.Status.Conditions = append(wl.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
	}
	return wl
}

func names(refs []kinds.Ref) []string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	return names
}
