package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apimachinery "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

const patience = "30s"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

var (
	jobKind    = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
)

// seen collects what a fleet tells.
type seen struct {
	mu      sync.Mutex
	changes []string
	states  []string
}

func (s *seen) changed(worker string, obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes, fmt.Sprintf("%s %T %s", worker, obj, obj.GetName()))
}

func (s *seen) state(worker string, status Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = append(s.states, worker+" "+string(status.Reach))
}

func (s *seen) allChanges() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.changes...)
}

func (s *seen) allStates() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.states...)
}

func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = nil
}

// startFleet runs a fleet with short times until the test ends, and checks that it leaves nothing running.
func startFleet(t *testing.T, change func(*Options)) (*Fleet, *seen) {
	t.Helper()
	scheme := apimachinery.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	told := &seen{}
	options := Options{
		Kinds: []schema.GroupVersionKind{jobKind, jobSetKind}, Origin: "me", Scheme: scheme,
		Index:         func(obj metav1.Object) (kinds.Ref, bool) { return kinds.Ref{Name: "of-" + obj.GetName()}, true },
		ProbeInterval: 50 * time.Millisecond, ProbeTimeout: time.Second, FailureThreshold: 3,
		RequestTimeout: 5 * time.Second, SyncTimeout: 20 * time.Second, KindRecheck: 50 * time.Millisecond,
		Backoff: Backoff{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		Events:  Events{Changed: told.changed, State: told.state},
	}
	change(&options)
	f := New(options)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		g := NewWithT(t)
		g.Eventually(ended, patience).Should(Receive(BeNil()))
		g.Eventually(leftovers, patience).Should(BeEmpty())
	})
	return f, told
}

// leftovers lists the goroutines that belong to connections.
func leftovers() []string {
	buffer := make([]byte, 8<<20)
	var found []string
	for _, stack := range strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		for _, sign := range []string{"client-go/tools/cache", "ClientConn", "persistConn", "fleet.(*worker)", "fleet.(*conn)", "fleet.(*servedKind)"} {
			if strings.Contains(stack, sign) {
				found = append(found, stack)
				break
			}
		}
	}
	return found
}

func reach(f *Fleet, worker string) func() Reach {
	return func() Reach { return f.Status(worker).Reach }
}

func mustConn(g Gomega, f *Fleet, worker string) Conn {
	g.Eventually(reach(f, worker), patience).Should(Equal(Connected))
	conn, ok := f.Conn(worker)
	g.Expect(ok).To(BeTrue())
	return conn
}

func jobNames(reader client.Reader) func() []string {
	return func() []string {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(jobKind.GroupVersion().WithKind("JobList"))
		if err := reader.List(context.Background(), list); err != nil {
			return []string{err.Error()}
		}
		names := []string{}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		return names
	}
}

func TestReadsOursAndNamesOfAll(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.put("workloads", "kueue.x-k8s.io/v1beta2", "Workload", "w-ours", "me")
	api.put("workloads", "kueue.x-k8s.io/v1beta2", "Workload", "w-other", "them")
	api.put("localqueues", "kueue.x-k8s.io/v1beta2", "LocalQueue", "queue", "")
	api.put("jobs", "batch/v1", "Job", "ours", "me")
	api.put("jobs", "batch/v1", "Job", "foreign", "")
	f, told := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")

	workload := kueue.SchemeGroupVersion.WithKind("Workload")
	for job, want := range map[string]int{"of-w-ours": 1, "of-w-other": 0} {
		g.Expect(conn.FindAll(workload, kinds.Ref{Name: job}, nil)).To(HaveLen(want))
	}
	g.Expect(conn.Find(workload, "ns/w-ours")).To(HaveField("Name", "w-ours"))
	g.Expect(conn.Find(workload, "ns/w-other")).To(BeNil())
	workloads := &kueue.WorkloadList{}
	g.Expect(conn.Reader().List(t.Context(), workloads)).To(Succeed())
	g.Expect(workloads.Items).To(HaveLen(1))
	g.Expect(conn.Reader().Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "queue"}, &kueue.LocalQueue{})).To(Succeed())
	g.Expect(jobNames(conn.Reader())()).To(Equal([]string{"ours"}))

	g.Expect(conn.FindName(jobKind, "ns/foreign")).To(HaveField("Annotations", BeEmpty()))
	g.Expect(conn.FindName(jobKind, "ns/ours")).To(HaveField("Labels", HaveKeyWithValue(kueue.MultiKueueOriginLabel, "me")))
	g.Expect(conn.FindName(jobKind, "ns/nobody")).To(BeNil())

	g.Eventually(told.allChanges, patience).Should(ContainElements("w1 *v1beta2.Workload w-ours", "w1 *unstructured.Unstructured ours"))
	told.forget()
	api.put("jobs", "batch/v1", "Job", "foreign2", "")
	api.put("jobs", "batch/v1", "Job", "ours", "me")
	api.remove("jobs", "foreign")
	g.Eventually(told.allChanges, patience).Should(ConsistOf(
		"w1 *v1.PartialObjectMetadata foreign2", "w1 *unstructured.Unstructured ours", "w1 *v1.PartialObjectMetadata foreign"))
	g.Expect(gauge(g, "ferry_worker_connected", "w1")).To(HaveValue(Equal(1.0)))
}

func TestMissingKindAppears(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	f, told := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	served, why := conn.Serves(jobSetKind)
	g.Expect(served).To(BeFalse())
	g.Expect(why).To(ContainSubstring("does not serve JobSet in jobset.x-k8s.io/v1alpha2"))
	g.Expect(conn.Serves(jobKind)).To(BeTrue())

	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(jobSetKind)
	var notServed *NotServedError
	g.Expect(errors.As(conn.Reader().Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, jobSet), &notServed)).To(BeTrue())

	before := len(told.allStates())
	api.serve(jobSetKind.GroupVersion().WithResource("jobsets"), "JobSet")
	api.put("jobsets", "jobset.x-k8s.io/v1alpha2", "JobSet", "x", "me")
	g.Eventually(func() bool { ok, _ := conn.Serves(jobSetKind); return ok }, patience).Should(BeTrue())
	g.Expect(conn.Reader().Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, jobSet)).To(Succeed())
	g.Eventually(func() int { return len(told.allStates()) }, patience).Should(BeNumerically(">", before))
}

func TestForbiddenKindDegradesAlone(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.fail("list jobs", forbiddenAnswer("list", "jobs"))
	api.fail("watch jobs", forbiddenAnswer("watch", "jobs"))
	f, _ := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	serves := func() bool { ok, _ := conn.Serves(jobKind); return ok }
	_, why := conn.Serves(jobKind)
	g.Expect(why).To(And(ContainSubstring(`cannot list resource "jobs"`), ContainSubstring("grant this permission")))
	api.fail("list jobs", nil)
	api.fail("watch jobs", nil)
	g.Eventually(serves, patience).Should(BeTrue())

	api.fail("list jobs", forbiddenAnswer("list", "jobs"))
	api.fail("watch jobs", forbiddenAnswer("watch", "jobs"))
	g.Eventually(serves, patience).Should(BeFalse(), "a permission taken away is noticed")
	g.Expect(f.Status("w1").Usable()).To(BeTrue())
}

func TestHangingKindDegradesAlone(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.fail("list jobs", hang)
	api.fail("watch jobs", hang)
	f, _ := startFleet(t, func(o *Options) { o.KindGrace = 100 * time.Millisecond })
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	served, why := conn.Serves(jobKind)
	g.Expect(served).To(BeFalse())
	g.Expect(why).To(ContainSubstring("still being read"))
	g.Expect(jobNames(conn.Reader())()).To(ConsistOf(ContainSubstring("still being read")), "a read does not wait")
}

func TestHangingWorkerIsItsOwnProblem(t *testing.T) {
	g := NewWithT(t)
	sick, well := newAPIServer(t), newAPIServer(t)
	sick.fail("list workloads", hang)
	sick.fail("watch workloads", hang)
	f, _ := startFleet(t, func(o *Options) { o.SyncTimeout = 3 * time.Second })
	f.Set("sick", sick.config("good"), "1")
	f.Set("well", well.config("good"), "1")
	mustConn(g, f, "well")
	g.Expect(f.Status("sick").Usable()).To(BeFalse())
	g.Eventually(reach(f, "sick"), patience).Should(Equal(Lost))
	g.Expect(f.Status("sick").Message).To(ContainSubstring("reading its Workloads"))
	g.Expect(f.Workers()).To(Equal([]string{"sick", "well"}))
	sick.fail("list workloads", nil)
	sick.fail("watch workloads", nil)
	mustConn(g, f, "sick")
}

func TestHangingProbeIsBounded(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.fail("*", hang)
	f, _ := startFleet(t, func(o *Options) { o.ProbeTimeout = 100 * time.Millisecond })
	f.Set("w1", api.config("good"), "1")
	g.Eventually(reach(f, "w1"), patience).Should(Equal(Lost))
	g.Expect(f.Status("w1").Message).To(Equal(api.URL +
		" does not answer: no answer within 100ms; check that the API server is up and reachable from the manager"))
}

func TestForbiddenWorkloadsAreNamed(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.fail("probe workloads", forbiddenAnswer("list", "workloads"))
	f, _ := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	g.Eventually(reach(f, "w1"), patience).Should(Equal(Lost))
	status := f.Status("w1")
	g.Expect(status.Reason).To(Equal("ClientConnectionFailed"))
	g.Expect(status.Message).To(And(ContainSubstring(`cannot list resource "workloads"`), ContainSubstring(api.URL)))
	_, ok := f.Conn("w1")
	g.Expect(ok).To(BeFalse())
}

func TestMissingKueueIsNamed(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.fail("probe workloads", notFoundAnswer)
	f, _ := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	g.Eventually(func() string { return f.Status("w1").Message }, patience).Should(ContainSubstring("install Kueue"))
}

// gauge reads a series of a worker from the registry; nil if there is none.
func gauge(g Gomega, name, worker string) *float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if family.GetName() == name && series.GetLabel()[0].GetValue() == worker {
				value := series.GetGauge().GetValue() + series.GetCounter().GetValue()
				return &value
			}
		}
	}
	return nil
}
