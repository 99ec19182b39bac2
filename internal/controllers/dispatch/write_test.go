package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

// TestOneRefusedStatusHoldsUpNoOther: the manager may refuse the status of one pod for as long as it is what it is.
func TestOneRefusedStatusHoldsUpNoOther(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	refused := apierrors.NewInvalid(gvk.GroupKind(), "a", nil)
	for name, test := range map[string]struct {
		answer   error
		is       func(error) bool
		mirrored []string
	}{
		"refused":  {refused, func(err error) bool { return err == nil }, []string{"b", "c"}}, // it is put off
		"changed":  {apierrors.NewConflict(corev1.Resource("pods"), "a", nil), apierrors.IsConflict, []string{"b", "c"}},
		"gone":     {apierrors.NewNotFound(corev1.Resource("pods"), "a"), apierrors.IsNotFound, []string{"b", "c"}},
		"accepted": {nil, func(err error) bool { return err == nil }, []string{"a", "b", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var mirrored []string
			manager := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					if obj.GetName() == "a" && test.answer != nil {
						return test.answer
					}
					mirrored = append(mirrored, obj.GetName())
					return nil
				},
			}).Build()
			memory := observe.NewMemory()
			r := &Reconciler{Observer: &observe.Observer{Memory: memory}, Applier: &apply.Applier{
				Manager: manager, Recorder: events.NewFakeRecorder(1), Memory: memory, Clock: testclock.NewFakePassiveClock(time.Unix(0, 0)),
			}}
			var p plan.Plan
			for _, pod := range []string{"a", "b", "c"} {
				job := &unstructured.Unstructured{}
				job.SetGroupVersionKind(gvk)
				job.SetName(pod)
				job.SetUID(types.UID(pod))
				p.Manager = append(p.Manager, plan.MirrorStatus{Kind: kinds.NewTable([]string{"pod"}).Rows()[0], Job: job, Status: map[string]any{"phase": "Running"}, Urgent: true})
			}
			wrote, _, err := r.write(t.Context(), plan.Snapshot{Ref: kinds.Ref{Kind: "PodGroup", Namespace: "team-a", Name: "pair"}, Now: time.Unix(0, 0)}, p)
			g.Expect(test.is(err)).To(BeTrue(), "%v", err)
			g.Expect(wrote).To(BeTrue())
			g.Expect(mirrored).To(Equal(test.mirrored))
		})
	}
}

// TestStatusesThatHaveTimeAreLeft: what nobody waits for is written with a queue and a budget of its own.
func TestStatusesThatHaveTimeAreLeft(t *testing.T) {
	g := NewWithT(t)
	var told []kinds.Ref
	r := &Reconciler{Observer: &observe.Observer{Memory: observe.NewMemory()}, Mirror: func(ref kinds.Ref) { told = append(told, ref) }} // it has no Applier: a write would panic
	job := &unstructured.Unstructured{}
	job.SetName("train")
	ref := kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}
	table := kinds.NewTable([]string{"batch/job"})
	wrote, _, err := r.write(t.Context(), plan.Snapshot{Ref: ref}, plan.Plan{Manager: []plan.Action{plan.MirrorStatus{Kind: table.Rows()[0], Job: job}}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wrote).To(BeFalse())
	g.Expect(told).To(Equal([]kinds.Ref{ref}))
}

// TestRefusedWriteHoldsUpNoOther: what the manager refuses of one Workload is told once, and those of the others are written.
func TestRefusedWriteHoldsUpNoOther(t *testing.T) {
	g := NewWithT(t)
	var written []string
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "workloads/status"}, "a", errors.New("no right to patch"))
	manager := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(_ context.Context, _ client.Client, _ string, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			name := obj.(interface{ GetName() string }).GetName()
			if name == "a" {
				return forbidden
			}
			written = append(written, name)
			return nil
		},
	}).Build()
	memory, told := observe.NewMemory(), events.NewFakeRecorder(10)
	r := &Reconciler{Observer: &observe.Observer{Memory: memory}, Applier: &apply.Applier{Manager: manager, Recorder: told, Memory: memory, Clock: testclock.NewFakePassiveClock(time.Unix(0, 0))}}
	s := plan.Snapshot{Ref: kinds.Ref{Kind: "LeaderWorkerSet", Namespace: "team-a", Name: "serve"}}
	var p plan.Plan
	for _, name := range []string{"a", "b"} {
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "ferry", State: kueue.CheckStatePending}}
		s.Workloads = append(s.Workloads, wl)
		p.Manager = append(p.Manager, plan.SetCheck{Workload: wl, Check: "ferry", State: kueue.CheckStateReady})
	}
	for range 2 {
		wrote, _, err := r.write(t.Context(), s, p)
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		g.Expect(wrote).To(BeTrue())
	}
	g.Expect(written).To(Equal([]string{"b", "b"}))
	g.Expect(told.Events).To(HaveLen(len(s.Workloads)), "once for each Workload")
}
