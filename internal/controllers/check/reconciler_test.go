package check

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// world is a manager's API, which counts the writes.
type world struct {
	client.WithWatch
	writes int
}

func newScheme(t testing.TB) *runtime.Scheme {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(kueue.AddToScheme(scheme)).To(Succeed())
	return scheme
}

// newWorld makes an API with these objects. before, if not nil, runs before each
// write of a status and may fail it.
func newWorld(t testing.TB, before func(client.Client) error, objects ...client.Object) *world {
	w := &world{}
	w.WithWatch = fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).
		WithStatusSubresource(&kueue.AdmissionCheck{}, &kueue.MultiKueueCluster{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if before != nil {
				if err := before(c); err != nil {
					return err
				}
			}
			w.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}}).Build()
	return w
}

func (w *world) reconcile(ctx context.Context) (reconcile.Result, error) {
	return (&Reconciler{Client: w}).Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "check"}})
}

func (w *world) check(ctx context.Context, g Gomega) *kueue.AdmissionCheck {
	check := &kueue.AdmissionCheck{}
	g.Expect(w.Get(ctx, client.ObjectKey{Name: "check"}, check)).To(Succeed())
	return check
}

func (w *world) active(ctx context.Context, g Gomega) *metav1.Condition {
	return meta.FindStatusCondition(w.check(ctx, g).Status.Conditions, kueue.AdmissionCheckActive)
}

func TestReconcileWritesWhatChangedAndNothingElse(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	check := newCheck(parameters("config"))
	check.Status.Conditions = []metav1.Condition{{Type: "Other", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Unix(1, 0)}}
	w := newWorld(t, nil, check)
	expect := func(reason string, writes int) {
		t.Helper()
		g.Expect(w.reconcile(ctx)).To(Equal(reconcile.Result{}))
		g.Expect(w.active(ctx, g)).To(HaveField("Reason", reason))
		g.Expect(w.active(ctx, g).ObservedGeneration).To(Equal(w.check(ctx, g).Generation))
		g.Expect(w.writes).To(Equal(writes))
	}
	expect("BadConfig", 1)
	expect("BadConfig", 1)
	g.Expect(w.Create(ctx, newConfig("w1", "w2"))).To(Succeed())
	expect("NoUsableClusters", 2)
	g.Expect(w.Create(ctx, newCluster("w1", metav1.ConditionTrue))).To(Succeed())
	expect("SomeActiveClusters", 3)
	g.Expect(w.Create(ctx, newCluster("w2", metav1.ConditionTrue))).To(Succeed())
	expect("Active", 4)
	expect("Active", 4)
	since := w.active(ctx, g).LastTransitionTime
	g.Expect(w.Delete(ctx, newCluster("w2", ""))).To(Succeed())
	expect("SomeActiveClusters", 5)
	g.Expect(w.active(ctx, g).LastTransitionTime).To(Equal(since), "the status did not change")

	changed := w.check(ctx, g)
	changed.Generation++
	g.Expect(w.Update(ctx, changed)).To(Succeed())
	expect("SomeActiveClusters", 6)
	g.Expect(w.check(ctx, g).Status.Conditions).To(ContainElement(check.Status.Conditions[0]), "another's condition stays")
}

func TestReconcileLeavesOthersAlone(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	foreign := newCheck(parameters("config"))
	foreign.Spec.ControllerName = "example.com/budget"
	w := newWorld(t, nil, foreign, newConfig("w1"))
	g.Expect(w.reconcile(ctx)).To(Equal(reconcile.Result{}))
	g.Expect(w.active(ctx, g)).To(BeNil())

	g.Expect(w.Delete(ctx, foreign)).To(Succeed())
	g.Expect(w.reconcile(ctx)).To(Equal(reconcile.Result{}))
	g.Expect(w.writes).To(BeZero())
}

func TestReconcileDecidesAnewAfterAConflict(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	theirs := metav1.Condition{Type: "Other", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Unix(1, 0)}
	interfered := false
	w := newWorld(t, func(c client.Client) error {
		if interfered {
			return nil
		}
		interfered = true
		check := &kueue.AdmissionCheck{}
		if err := c.Get(ctx, client.ObjectKey{Name: "check"}, check); err != nil {
			return err
		}
		check.Status.Conditions = append(check.Status.Conditions, theirs)
		return c.Status().Update(ctx, check)
	}, newCheck(nil))
	g.Expect(w.reconcile(ctx)).To(HaveField("RequeueAfter", BeNumerically(">", 0)))
	g.Expect(w.active(ctx, g)).To(BeNil())
	g.Expect(w.reconcile(ctx)).To(Equal(reconcile.Result{}))
	g.Expect(w.active(ctx, g)).To(HaveField("Reason", "BadConfig"))
	g.Expect(w.check(ctx, g).Status.Conditions).To(ContainElement(theirs))
}

func TestReconcileWhenWritingFails(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "admissionchecks"}, "check")
	w := newWorld(t, func(client.Client) error { return gone }, newCheck(nil))
	g.Expect(w.reconcile(ctx)).To(Equal(reconcile.Result{}), "deleted meanwhile")

	w = newWorld(t, func(client.Client) error { return errors.New("the API is away") }, newCheck(nil))
	_, err := w.reconcile(ctx)
	g.Expect(err).To(MatchError(And(ContainSubstring("AdmissionCheck check"), ContainSubstring("the API is away"))))
}

// TestReconcileDoesNotGuess: what cannot be read is not said to be missing.
func TestReconcileDoesNotGuess(t *testing.T) {
	for _, kind := range []string{"AdmissionCheck", "MultiKueueConfig", "MultiKueueCluster"} {
		g, ctx := NewWithT(t), t.Context()
		w := newWorld(t, nil, newCheck(parameters("config")), newConfig("w1"), newCluster("w1", metav1.ConditionTrue))
		w.WithWatch = interceptor.NewClient(w.WithWatch, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			gvk, err := c.GroupVersionKindFor(into)
			if err != nil || gvk.Kind == kind {
				return errors.Join(err, errors.New("the cache is away"))
			}
			return c.Get(ctx, key, into, opts...)
		}})
		_, err := w.reconcile(ctx)
		g.Expect(err).To(MatchError(And(ContainSubstring(kind), ContainSubstring("the cache is away"))))
		g.Expect(w.writes).To(BeZero())
	}
}
