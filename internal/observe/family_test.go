package observe

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// relative is a pod of a Deployment with its Workload: on offer, or assigned to a worker.
func relative(name, family, worker string) []client.Object {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name), Annotations: map[string]string{kinds.FamilyAnnotation: family},
	}}
	controls := true
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "pod-" + name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: name, UID: pod.UID, Controller: &controls},
	}}}
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, Reason: "x"})
	if worker != "" {
		wl.Status.ClusterName = &worker
	}
	return []client.Object{pod, wl}
}

func TestFamily(t *testing.T) {
	for name, c := range map[string]struct {
		others [][]client.Object
		first  string        // who asked first
		ago    time.Duration // when that was
		want   plan.Family
	}{
		"alone":                    {nil, "", 0, plan.Family{}},
		"the first":                {[][]client.Object{relative("b", "web", "")}, "m", time.Second, plan.Family{}},
		"not the first":            {[][]client.Object{relative("b", "web", "")}, "b", time.Second, plan.Family{Earlier: "b", Until: start.Add(choosesFor - time.Second)}},
		"the first took too long":  {[][]client.Object{relative("b", "web", "")}, "b", time.Minute, plan.Family{}},
		"one has a worker":         {[][]client.Object{relative("b", "web", "w2")}, "b", time.Second, plan.Family{Home: "w2"}},
		"most of them decide":      {[][]client.Object{relative("b", "web", "w2"), relative("d", "web", "w1"), relative("e", "web", "w2")}, "", 0, plan.Family{Home: "w2"}},
		"another Deployment's pod": {[][]client.Object{relative("b", "api", "w2")}, "", 0, plan.Family{}},
		"a pod of no Deployment":   {[][]client.Object{relative("b", "", "w2")}, "", 0, plan.Family{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(kueue.AddToScheme(scheme)).To(Succeed())
			g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
			objects := relative("m", "web", "")
			for _, other := range c.others {
				objects = append(objects, other...)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
				WithIndex(&kueue.Workload{}, JobIndex, OwnerIndex).Build()
			o := &Observer{Manager: reader, Memory: NewMemory(), Clock: clocktesting.NewFakePassiveClock(start)}
			me := &unstructured.Unstructured{}
			me.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			g.Expect(reader.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "m"}, me)).To(Succeed())
			s := plan.Snapshot{
				Now: start, Ref: kinds.RefOf(me), Kind: kinds.NewTable([]string{"pod"}).ByName("Pod"), Check: "ours",
				Jobs: []*unstructured.Unstructured{me}, Workloads: []*kueue.Workload{objects[1].(*kueue.Workload)},
			}
			g.Expect(o.meet(t.Context(), &s, "team/web")).To(Succeed())
			if c.first != "" {
				o.Memory.firstOf("team/web", podRef(c.first), start.Add(-c.ago))
			}
			g.Expect(o.readFamily(t.Context(), &s)).To(Succeed())
			g.Expect(s.Family).To(Equal(c.want))

			again := s
			again.Family, again.Ref.Name = plan.Family{}, "another"
			g.Expect(o.readFamily(t.Context(), &again)).To(Succeed())
			if c.want == (plan.Family{}) {
				g.Expect(again.Family.Earlier).To(Equal("m"), "whoever asks later waits for who chooses")
			}
			g.Expect(o.readFamily(t.Context(), &plan.Snapshot{Ref: s.Ref, Now: start})).To(Succeed())
			g.Expect(o.Memory.firstOf("team/web", again.Ref, start).ref).NotTo(Equal(s.Ref), "a job that is gone chooses nothing")
		})
	}
}

func podRef(name string) kinds.Ref { return kinds.Ref{Kind: "Pod", Namespace: "team", Name: name} }

// TestFamilyIsWokenOnce: nobody has to look again and again whether a relative has a worker.
func TestFamilyIsWokenOnce(t *testing.T) {
	g := NewWithT(t)
	m := NewMemory()
	a, b, c := podRef("a"), podRef("b"), podRef("c")
	for _, ref := range []kinds.Ref{c, b, a} {
		g.Expect(m.joins("team/web", ref, "")).To(BeEmpty())
		g.Expect(m.firstOf("team/web", ref, start).ref).To(Equal(c))
	}
	g.Expect(m.leaves(b)).To(BeEmpty(), "nobody waits for it")
	g.Expect(m.joins("team/web", b, "")).To(BeEmpty())
	g.Expect(m.leaves(c)).To(Equal([]kinds.Ref{a}), "another is to choose")
	g.Expect(m.firstOf("team/web", a, start).ref).To(Equal(a))
	g.Expect(m.joins("team/web", c, "")).To(BeEmpty())
	g.Expect(m.joins("team/web", a, "w1")).To(Equal([]kinds.Ref{b, c}))
	g.Expect(m.joins("team/web", a, "w1")).To(BeEmpty(), "they know")
	g.Expect(m.joins("team/web", b, "w1")).To(BeEmpty(), "the others have been asked to come")
	g.Expect(m.joins("team/web", b, "w2")).To(BeEmpty())
	g.Expect(m.joins("team/web", a, "w2")).To(BeEmpty())
	g.Expect(m.homeOf("team/web")).To(Equal("w2"), "all moved")
	for _, ref := range []kinds.Ref{a, b, c} {
		m.leaves(ref)
	}
	g.Expect(m.families).To(BeEmpty())
	g.Expect(m.relatives).To(BeEmpty())
}

// TestFamilyIsListedOnce: one look costs the same, however many pods the Deployment has.
func TestFamilyIsListedOnce(t *testing.T) {
	g := NewWithT(t)
	lists := 0
	o := &Observer{Manager: counting{&lists}, Memory: NewMemory(), Clock: clocktesting.NewFakePassiveClock(start)}
	for i := range 1000 {
		pod := &unstructured.Unstructured{}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		pod.SetNamespace("team")
		pod.SetName(fmt.Sprint("web-", i))
		pod.SetAnnotations(map[string]string{kinds.FamilyAnnotation: "web"})
		s := plan.Snapshot{Now: start, Ref: kinds.RefOf(pod), Kind: kinds.NewTable([]string{"pod"}).ByName("Pod"), Check: "ours", Jobs: []*unstructured.Unstructured{pod}}
		g.Expect(o.readFamily(t.Context(), &s)).To(Succeed())
	}
	g.Expect(lists).To(Equal(1))
}

type counting struct{ lists *int }

func (c counting) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (c counting) List(context.Context, client.ObjectList, ...client.ListOption) error {
	*c.lists++
	return nil
}
