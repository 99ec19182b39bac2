package apply

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

// today are the fields that Kueue 0.19 owns of the status of a Workload that waits for its check.
const today = `"f:admission":{"f:clusterQueue":{},"f:podSetAssignments":{"k:{\"name\":\"main\"}":{".":{},"f:count":{},"f:flavors":{"f:cpu":{}},"f:name":{},"f:resourceUsage":{"f:cpu":{}}}}},
	"f:admissionChecks":{"k:{\"name\":\"ferry\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:name":{},"f:state":{}}},
	"f:conditions":{"k:{\"type\":\"QuotaReserved\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},
	"f:nominatedClusterNames":{},"f:schedulingStats":{"f:evictions":{"k:{\"reason\":\"Preempted\",\"underlyingCause\":\"\"}":{".":{},"f:count":{},"f:reason":{},"f:underlyingCause":{}}}}`

func owned(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "kueue.x-k8s.io/v1beta2", Subresource: "status",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{` + fields + `}}`),
	}
}

// TestManagedFieldsAreKeptForWhatWeDoNotKnow: only they tell of it, and a Workload costs a read only then.
func TestManagedFieldsAreKeptForWhatWeDoNotKnow(t *testing.T) {
	for name, test := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		kept  bool
	}{
		"Kueue's of today":       {owned(kueueAdmission, today), false},
		"others'":                {owned("somebody", `"f:forecast":{}`), false},
		"a new field":            {owned(kueueAdmission, today+`,"f:forecast":{}`), true},
		"a new field of a check": {owned(kueueAdmission, `"f:admissionChecks":{"k:{\"name\":\"ferry\"}":{"f:score":{}}}`), true},
		"a new condition":        {owned(kueueAdmission, `"f:conditions":{"k:{\"type\":\"Forecast\"}":{"f:status":{}}}`), true},
	} {
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{test.entry}}}
		Strip(wl)
		NewWithT(t).Expect(wl.ManagedFields != nil).To(Equal(test.kept), name)
	}
}

// TestAnApplyCarriesWhatANewerKueueOwns: what an apply leaves out is removed.
func TestAnApplyCarriesWhatANewerKueueOwns(t *testing.T) {
	g := NewWithT(t)
	fields := owned(kueueAdmission, today+`,"f:forecast":{},"f:conditions":{"k:{\"type\":\"Forecast\"}":{".":{},"f:type":{},"f:status":{}},"k:{\"type\":\"QuotaReserved\"}":{"f:status":{}}},
		"f:admissionChecks":{"k:{\"name\":\"ferry\"}":{"f:name":{},"f:score":{}}}`)
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "wl", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{fields}}}
	wl.Status.NominatedClusterNames = []string{"w1"}
	wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "ferry", State: kueue.CheckStatePending}}
	wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue}, {Type: "Forecast", Status: metav1.ConditionTrue}, {Type: "Theirs"}}
	live := &unstructured.Unstructured{}
	var err error
	live.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(wl)
	g.Expect(err).NotTo(HaveOccurred())
	live.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	g.Expect(unstructured.SetNestedField(live.Object, "soon", "status", "forecast")).To(Succeed())
	live.Object["status"].(map[string]any)["admissionChecks"].([]any)[0].(map[string]any)["score"] = int64(3)

	reads := 0
	var applied *unstructured.Unstructured
	manager := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			reads++
			live.DeepCopyInto(obj.(*unstructured.Unstructured))
			return nil
		},
		SubResourceApply: func(_ context.Context, _ client.Client, _ string, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			applied = &unstructured.Unstructured{Object: obj.(runtime.Unstructured).UnstructuredContent()}
			return nil
		},
	}).Build()
	a := &Applier{Manager: manager, Memory: observe.NewMemory(), Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	claim := plan.Claim{Workload: wl, Check: "ferry", Worker: "w1", Message: "Placing"}
	g.Expect(a.OnManager(t.Context(), kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}, claim)).To(Succeed())
	status := applied.Object["status"].(map[string]any)
	g.Expect(status).To(And(HaveKeyWithValue("forecast", "soon"), HaveKeyWithValue("clusterName", "w1"), HaveKeyWithValue("nominatedClusterNames", BeEmpty())))
	check := status["admissionChecks"].([]any)[0]
	g.Expect(check).To(And(HaveKeyWithValue("score", int64(3)), HaveKeyWithValue("message", "Placing")))
	g.Expect(status["conditions"]).To(ConsistOf(HaveKeyWithValue("type", "QuotaReserved"), HaveKeyWithValue("type", "Forecast")))
	g.Expect(reads).To(Equal(1))

	live.SetResourceVersion("8")
	g.Expect(a.OnManager(t.Context(), kinds.Ref{}, claim)).NotTo(Succeed(), "it changed since it was decided on")
	wl.ManagedFields = nil
	live.SetResourceVersion("7")
	g.Expect(a.OnManager(t.Context(), kinds.Ref{}, claim)).To(Succeed())
	g.Expect(reads).To(Equal(2), "usually there is nothing to read for")
}
