package observe

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/plan"
)

// queuesConn is a connection to a worker whose caches have what the client has.
type queuesConn struct {
	fleet.Conn // not asked for anything else
	has        client.Client
	unread     bool
}

func (c *queuesConn) Reader() client.Reader { return c.has }

func (c *queuesConn) Serves(schema.GroupVersionKind) (bool, string) { return !c.unread, "forbidden" }

func (c *queuesConn) Find(gvk schema.GroupVersionKind, key string) (client.Object, error) {
	obj, err := c.has.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(key, "/")
	found := obj.(client.Object)
	if err := c.has.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}

const eightCPUs = "8"

func newQueuesConn(t *testing.T, objects ...client.Object) *queuesConn {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	quota := kueue.ResourceQuota{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(eightCPUs)}
	objects = append(objects,
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f"}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups:    []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []kueue.FlavorQuotas{{Name: "f", Resources: []kueue.ResourceQuota{quota}}}}},
		}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lq"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "q"}},
	)
	return &queuesConn{has: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

// waits is a Workload of the manager that asks for CPUs.
func waits(name, cpu string, nominated ...string) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: kueue.WorkloadSpec{QueueName: "lq", PodSets: []kueue.PodSet{{
		Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}}},
	}}}}
	wl.Status.Admission = &kueue.Admission{ClusterQueue: "managers"}
	wl.Status.NominatedClusterNames = nominated
	return wl
}

// has is a copy that got CPUs, or, with an empty amount, an answer and nothing.
func has(name, cpu string) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse}}
	if cpu != "" {
		wl.Status.Conditions[0].Status = metav1.ConditionTrue
		wl.Status.Admission = &kueue.Admission{ClusterQueue: "q", PodSetAssignments: []kueue.PodSetAssignment{{
			Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"}, ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		}}}
	}
	return wl
}

// TestOffersCountBeforeTheStatusDoes: a burst would go to one worker otherwise. What Kueue has answered counts by its
// answer, and once the queue's status has it, by that alone.
func TestOffersCountBeforeTheStatusDoes(t *testing.T) {
	conn := newQueuesConn(t)
	c, now := NewCapacity(), start
	fits := func(cpu string) capacity.Class {
		return c.fit(conn, &look{Snapshot: &plan.Snapshot{Now: now, Workloads: []*kueue.Workload{waits("mine", cpu)}}}, "w1").Class
	}
	expect := func(when, cpu string, want capacity.Class) {
		t.Helper()
		if got := fits(cpu); got != want {
			t.Errorf("%s: %s CPUs: class %d, want %d", when, cpu, got, want)
		}
	}
	expect("at first", "8", capacity.FitsNominal)
	c.Offered(waits("other", "6", "w1"), now)
	c.Offered(waits("elsewhere", "6", "w2"), now)
	c.Offered(waits("mine", "6", "w1"), now)
	expect("one is offered", "8", capacity.FitsLater)
	expect("one is offered", "2", capacity.FitsNominal)
	expect("more than there ever is", "9", capacity.NeverFits)
	now = now.Add(offeredFor + time.Second)
	expect("nobody answers", "8", capacity.FitsNominal)

	c.Offered(waits("other", "6", "w1"), now)
	c.Offered(waits("other", "6", "w2"), now)
	expect("the other one moved on", "8", capacity.FitsNominal)

	c.Offered(waits("other", "6", "w1"), now)
	if err := conn.has.Create(t.Context(), has("other", "")); err != nil {
		t.Fatal(err)
	}
	c.SawCopy("w1", has("other", ""), now)
	expect("Kueue has nothing for it", "8", capacity.FitsNominal)
	if err := conn.has.Update(t.Context(), found(t, conn, has("other", "5"))); err != nil {
		t.Fatal(err)
	}
	c.SawCopy("w1", has("other", "5"), now)
	expect("it has quota", "4", capacity.FitsLater)
	now = now.Add(statusLag + time.Second)
	expect("the status is the truth by now", "4", capacity.FitsNominal)

	c.Offered(waits("third", "6", "w1"), now)
	c.Lost("w1")
	expect("another connection", "8", capacity.FitsNominal)
}

// found is an object with the version that it has.
func found(t *testing.T, conn *queuesConn, wl *kueue.Workload) *kueue.Workload {
	t.Helper()
	now := &kueue.Workload{}
	if err := conn.has.Get(t.Context(), client.ObjectKeyFromObject(wl), now); err != nil {
		t.Fatal(err)
	}
	wl.ResourceVersion = now.ResourceVersion
	return wl
}

// TestFitIsUnknown where the queues are not read, or may not be.
func TestFitIsUnknown(t *testing.T) {
	conn := newQueuesConn(t)
	conn.unread = true
	s := &look{Snapshot: &plan.Snapshot{Now: start, Workloads: []*kueue.Workload{waits("mine", "1")}}}
	if got := NewCapacity().fit(conn, s, "w1"); got.Class != capacity.Unknown {
		t.Errorf("%+v", got)
	}
}

// TestMoreToHave: only what may help somebody wakes those that wait.
func TestMoreToHave(t *testing.T) {
	uses := func(cpu string) *kueue.ClusterQueue {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: kueue.ClusterQueueStatus{FlavorsReservation: []kueue.FlavorUsage{
			{Name: "f", Resources: []kueue.ResourceUsage{{Name: "cpu", Total: resource.MustParse(cpu)}}},
		}}}
	}
	larger := uses("5")
	larger.Generation = 2
	c := NewCapacity()
	c.fit(newQueuesConn(t), &look{Snapshot: &plan.Snapshot{Now: start, Workloads: []*kueue.Workload{waits("mine", "1")}}}, "w1")
	for i, step := range []struct {
		now  client.Object
		more bool
	}{
		{uses("2"), true}, {uses("4"), false}, {uses("4"), false}, {uses("3"), true}, {uses("5"), false}, {larger, true}, {&kueue.Cohort{}, true}, {nil, true},
	} {
		if more := c.Changed("w1", step.now); more != step.more {
			t.Errorf("step %d: more: %v", i, more)
		}
	}
}
