package fleet

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRotatedCredentials(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	f, _ := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	mustConn(g, f, "w1")
	api.allow("better")
	g.Eventually(reach(f, "w1"), patience).Should(Equal(Lost))
	since := f.Status("w1").LostSince
	g.Expect(since).NotTo(BeZero())
	g.Expect(f.Status("w1").Message).To(ContainSubstring("401 Unauthorized"))
	f.Unusable("w1", "BadKubeConfig", "gone")
	g.Expect(f.Status("w1")).To(Equal(Status{Reach: Unusable, LostSince: since, Seen: true, Reason: "BadKubeConfig", Message: "gone"}))
	f.Set("w1", api.config("better"), "2")
	mustConn(g, f, "w1")
	g.Expect(f.Status("w1").LostSince).To(BeZero())
}

func TestLossAndReturn(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.put("jobs", "batch/v1", "Job", "ours", "me")
	f, _ := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	old := mustConn(g, f, "w1")
	g.Eventually(jobNames(old.Reader()), patience).Should(Equal([]string{"ours"}))

	api.fail("*", drop)
	g.Eventually(reach(f, "w1"), patience).Should(Equal(Lost))
	g.Eventually(jobNames(old.Reader()), patience).Should(Equal([]string{errClosed.Error()}), "a lost connection is not read")
	g.Expect(gauge(g, "ferry_worker_connection_losses_total", "w1")).To(HaveValue(Equal(1.0)))
	api.remove("jobs", "ours")
	api.put("jobs", "batch/v1", "Job", "other", "me")
	api.fail("*", nil)
	fresh := mustConn(g, f, "w1")
	g.Eventually(jobNames(fresh.Reader()), patience).Should(Equal([]string{"other"}))
	g.Expect(jobNames(old.Reader())()).To(Equal([]string{errClosed.Error()}))
}

func TestHangingListsAfterConnectAreALoss(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	f, _ := startFleet(t, func(o *Options) { o.RequestTimeout, o.ProbeTimeout = time.Second, time.Second })
	f.Set("w1", api.config("good"), "1")
	mustConn(g, f, "w1")
	for _, verb := range []string{"probe", "list", "watch"} {
		api.fail(verb+" workloads", hang)
	}
	g.Eventually(reach(f, "w1"), patience).Should(Equal(Lost), "although /readyz is fine")
}

func TestIdleWatchesThatEndAreNoLoss(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	f, told := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	api.fail("nothing", nil) // ends every watch
	api.put("jobs", "batch/v1", "Job", "late", "me")
	g.Eventually(jobNames(conn.Reader()), patience).Should(Equal([]string{"late"}))
	g.Expect(told.allStates()).NotTo(ContainElement("w1 Lost"))
}

func TestWritesAreBounded(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	f, _ := startFleet(t, func(o *Options) { o.RequestTimeout = 500 * time.Millisecond })
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(jobKind)
	job.SetNamespace("ns")
	job.SetName("x")
	g.Expect(conn.Client().Create(t.Context(), job.DeepCopy())).To(Succeed())
	api.fail("write jobs", hang)
	g.Expect(conn.Client().Create(t.Context(), job.DeepCopy())).To(MatchError(context.DeadlineExceeded))
	api.fail("write jobs", func(a *apiServer, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		answer(http.StatusTooManyRequests, "TooManyRequests", "later")(a, w, r)
	})
	g.Expect(conn.Client().Create(t.Context(), job.DeepCopy())).To(HaveOccurred(), "the server's wish to wait is not followed for ever")
	api.fail("write jobs", hang)
	failed := make(chan error, 1)
	go func() { failed <- conn.Client().Create(context.Background(), job.DeepCopy()) }()
	f.Remove("w1")
	g.Eventually(failed, patience).Should(Receive(HaveOccurred()))
	g.Eventually(func() error { return conn.Client().Create(t.Context(), job.DeepCopy()) }, patience).Should(MatchError(errClosed))
}

func TestRemoveEndsEverything(t *testing.T) {
	g := NewWithT(t)
	g.Eventually(leftovers, patience).Should(BeEmpty())
	api := newAPIServer(t)
	f, told := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	mustConn(g, f, "w1")
	g.Expect(leftovers()).NotTo(BeEmpty())
	f.Remove("w1")
	g.Expect(f.Status("w1")).To(Equal(Status{Reach: Unknown, Seen: true}))
	g.Expect(f.Workers()).To(BeEmpty())
	g.Eventually(leftovers, patience).Should(BeEmpty())
	g.Eventually(func() *float64 { return gauge(g, "ferry_worker_connected", "w1") }, patience).Should(BeNil())
	g.Expect(told.allStates()).To(HaveExactElements(ContainSubstring("Connecting"), ContainSubstring("Connected"), Equal("w1 ")))
}
