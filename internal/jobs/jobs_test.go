package jobs_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ferry.dev/ferry/internal/jobs"
)

// told remembers what a listener was told.
type told struct {
	mu      sync.Mutex
	changed map[string]int
	served  int
}

func (t *told) listener() jobs.Listener {
	return jobs.Listener{
		Changed: func(job *unstructured.Unstructured) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.changed[job.GetName()]++
		},
		Served: func(schema.GroupVersionKind) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.served++
		},
	}
}

func (t *told) of(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed[name]
}

func (t *told) servings() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.served
}

// start reads the tasks of a server until the test ends.
func start(t *testing.T, api *apiServer) *jobs.Jobs {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	j, err := jobs.New(jobs.Options{
		Config: &rest.Config{Host: api.URL}, HTTP: http.DefaultClient, Scheme: scheme, Mapper: mapper(), Kinds: []schema.GroupVersionKind{task},
		Other: fake.NewClientBuilder().WithScheme(scheme).Build(), Log: logr.Discard(),
		RecheckFirst: 20 * time.Millisecond, RecheckMost: time.Hour,
	})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		g.Eventually(ended, patience).Should(Receive(BeNil()))
	})
	awaited, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g.Expect(j.Await(awaited)).To(BeTrue())
	g.Eventually(func() bool { return api.watched(crds) }, patience).Should(BeTrue())
	return j
}

const patience = 20 * time.Second

// read looks for a task: found, not found, or why nobody knows.
func read(j *jobs.Jobs, name string) string {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(task)
	err := j.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, job)
	var notServed *jobs.NotServedError
	switch {
	case err == nil:
		return "found"
	case apierrors.IsNotFound(err):
		return "not found"
	case errors.As(err, &notServed):
		return notServed.Why
	}
	return "error: " + err.Error()
}

func TestTheKindIsReadAsSoonAsItsCRDIsThere(t *testing.T) {
	g, api := NewWithT(t), newAPIServer(t)
	j := start(t, api)
	g.Expect(read(j, "a")).To(ContainSubstring("the manager does not serve Task in example.com/v1: install its CRD"))
	heard := &told{changed: map[string]int{}}
	j.Listen(heard.listener())

	api.install()
	g.Eventually(func() string { return read(j, "a") }, patience).Should(Equal("not found"))
	g.Eventually(heard.servings, patience).Should(Equal(1))
	g.Eventually(func() bool { return api.watched(tasks) }, patience).Should(BeTrue())
	api.put("a")
	g.Eventually(func() string { return read(j, "a") }, patience).Should(Equal("found"))
	g.Eventually(func() int { return heard.of("a") }, patience).Should(Equal(1))

	late := &told{changed: map[string]int{}}
	j.Listen(late.listener())
	g.Expect(late.of("a")).To(Equal(1), "who listens late is told what is known")
}

// TestAfterTheCRD: objects that were seen to be deleted are gone; of others nobody knows.
func TestAfterTheCRD(t *testing.T) {
	for name, test := range map[string]struct {
		keep bool
		want string
	}{
		"deleted with it": {false, "not found"},
		"out of sight":    {true, "the manager does not serve Task in example.com/v1: install its CRD there"},
	} {
		t.Run(name, func(t *testing.T) {
			g, api := NewWithT(t), newAPIServer(t)
			api.install()
			api.put("a")
			j := start(t, api)
			heard := &told{changed: map[string]int{}}
			j.Listen(heard.listener())
			g.Eventually(func() string { return read(j, "a") }, patience).Should(Equal("found"))
			g.Eventually(func() bool { return api.watched(tasks) }, patience).Should(BeTrue())
			api.uninstall(test.keep)
			g.Eventually(heard.servings, patience).Should(Equal(1))
			g.Expect(read(j, "a")).To(Equal(test.want))
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(task.GroupVersion().WithKind("TaskList"))
			g.Expect(j.List(t.Context(), list) == nil).To(Equal(!test.keep))

			api.put("b")
			api.install()
			g.Eventually(func() string { return read(j, "b") }, patience).Should(Equal("found"))
		})
	}
}

func TestAForbiddenKindSaysSo(t *testing.T) {
	g, api := NewWithT(t), newAPIServer(t)
	api.install()
	api.forbid(true)
	j := start(t, api)
	g.Expect(read(j, "a")).To(And(ContainSubstring(`cannot list resource "tasks"`), ContainSubstring("grant this permission")))
	api.put("a")
	api.forbid(false)
	g.Eventually(func() string { return read(j, "a") }, patience).Should(Equal("found"))
}

func TestOtherKindsAreReadElsewhere(t *testing.T) {
	g, api := NewWithT(t), newAPIServer(t)
	j := start(t, api)
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"})
	err := j.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, other)
	var notServed *jobs.NotServedError
	g.Expect(errors.As(err, &notServed)).To(BeFalse())
	g.Expect(err).To(HaveOccurred(), "the other reader does not know the kind")
}
