package check

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// informers tell of each handler that a controller adds: what happens before
// that, fake informers tell nobody.
type informers struct {
	informertest.FakeInformers
	added chan struct{}
}

type informer struct {
	cache.Informer
	added chan<- struct{}
}

func (i *informers) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	found, err := i.FakeInformers.GetInformer(ctx, object, opts...)
	return informer{found, i.added}, err
}

func (i informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	defer func() { i.added <- struct{}{} }()
	return i.Informer.AddEventHandlerWithOptions(h, o)
}

// live is a running controller over a world whose changes it is told of.
type live struct {
	*world
	t         *testing.T
	g         Gomega
	informers *informers
}

func start(t *testing.T) *live {
	g := NewWithT(t)
	fakes := informertest.FakeInformers{Scheme: newScheme(t)}
	l := &live{world: newWorld(t, nil), t: t, g: g, informers: &informers{fakes, make(chan struct{})}}
	for _, object := range []client.Object{&kueue.AdmissionCheck{}, &kueue.MultiKueueConfig{}, &kueue.MultiKueueCluster{}} {
		l.informer(object) // made now, because the fakes are not safe to make from several goroutines
	}
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:         l.Scheme(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     controllerconfig.Controller{SkipNameValidation: ptr.To(true)}, // for go test -count
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return l.informers, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return l.world, nil },
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return l.RESTMapper(), nil },
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Setup(mgr)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { g.Eventually(ended, 10*time.Second).Should(Receive(Succeed())) })
	for range 3 {
		g.Eventually(l.informers.added, 10*time.Second).Should(Receive())
	}
	return l
}

func (l *live) informer(object client.Object) *controllertest.FakeInformer {
	informer, err := l.informers.FakeInformerFor(l.t.Context(), object)
	l.g.Expect(err).NotTo(HaveOccurred())
	return informer
}

func (l *live) add(object client.Object) {
	l.g.Expect(l.Create(l.t.Context(), object)).To(Succeed())
	l.informer(object).Add(object)
}

// change writes the object, its status too, and tells of it.
func (l *live) change(object client.Object) {
	before := object.DeepCopyObject().(client.Object)
	l.g.Expect(l.Get(l.t.Context(), client.ObjectKeyFromObject(object), before)).To(Succeed())
	object.SetResourceVersion(before.GetResourceVersion())
	wanted := object.DeepCopyObject().(client.Object)
	l.g.Expect(l.Update(l.t.Context(), object)).To(Succeed())
	if _, hasStatus := object.(*kueue.MultiKueueConfig); !hasStatus {
		wanted.SetResourceVersion(object.GetResourceVersion())
		l.g.Expect(l.Status().Update(l.t.Context(), wanted)).To(Succeed())
	}
	l.informer(object).Update(before, wanted)
}

func (l *live) remove(object client.Object) {
	l.g.Expect(l.Delete(l.t.Context(), object)).To(Succeed())
	l.informer(object).Delete(object)
}

func (l *live) comes(message string) {
	l.t.Helper()
	l.g.Eventually(func(g Gomega) {
		g.Expect(l.active(l.t.Context(), g)).To(HaveField("Message", message))
	}, 10*time.Second, 5*time.Millisecond).Should(Succeed())
}

// TestEveryChangeCounts runs the controller as Setup wires it.
func TestEveryChangeCounts(t *testing.T) {
	l := start(t)
	l.add(newCheck(parameters("other")))
	l.comes(`Cannot load the AdmissionChecks parameters: MultiKueueConfig.kueue.x-k8s.io "other" not found`)
	l.change(newCheck(parameters("config")))
	l.comes(`Cannot load the AdmissionChecks parameters: MultiKueueConfig.kueue.x-k8s.io "config" not found`)
	l.add(newConfig("w1"))
	l.comes("Missing clusters: [w1]")
	l.change(newConfig("w1", "w2"))
	l.comes("Missing clusters: [w1 w2]")
	l.add(newCluster("w1", ""))
	l.comes("Missing clusters: [w2], Inactive clusters: [w1]")
	l.add(newCluster("w2", metav1.ConditionTrue))
	l.comes("Inactive clusters: [w1]")
	l.change(newCluster("w1", metav1.ConditionTrue))
	l.comes("The admission check is active")
	l.change(newCluster("w2", metav1.ConditionFalse))
	l.comes("Inactive clusters: [w2]")
	l.remove(newCluster("w2", ""))
	l.comes("Missing clusters: [w2]")
	l.remove(newConfig())
	l.comes(`Cannot load the AdmissionChecks parameters: MultiKueueConfig.kueue.x-k8s.io "config" not found`)
}

func TestWhatConcernsTheChecks(t *testing.T) {
	g := NewWithT(t)
	cluster := func(status metav1.ConditionStatus, message string) client.Object {
		c := newCluster("w1", status)
		if len(c.Status.Conditions) > 0 {
			c.Status.Conditions[0].Message = message
		}
		return c
	}
	g.Expect(turned(event.UpdateEvent{ObjectOld: cluster("", ""), ObjectNew: cluster(metav1.ConditionFalse, "")})).To(BeFalse())
	g.Expect(turned(event.UpdateEvent{ObjectOld: cluster(metav1.ConditionFalse, "a"), ObjectNew: cluster(metav1.ConditionFalse, "b")})).To(BeFalse())
	g.Expect(turned(event.UpdateEvent{ObjectOld: cluster(metav1.ConditionFalse, ""), ObjectNew: cluster(metav1.ConditionTrue, "")})).To(BeTrue())
	g.Expect(renamed(event.UpdateEvent{ObjectOld: newConfig("w1"), ObjectNew: newConfig("w1")})).To(BeFalse())
	g.Expect(renamed(event.UpdateEvent{ObjectOld: newConfig("w1", "w2"), ObjectNew: newConfig("w2", "w1")})).To(BeTrue())

	mine, foreign := newCheck(nil), newCheck(nil)
	foreign.Name, foreign.Spec.ControllerName = "foreign", "example.com/budget"
	g.Expect(isOurs(mine)).To(BeTrue())
	g.Expect(isOurs(foreign)).To(BeFalse())
	requests := all(newWorld(t, nil, mine, foreign))(t.Context(), newConfig())
	g.Expect(requests).To(ConsistOf(HaveField("Name", "check")))
}
