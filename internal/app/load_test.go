package app

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/controllers/dispatch"
	"ferry.dev/ferry/internal/controllers/lane"
	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

var (
	loadJobs    = flag.Int("load-jobs", 1000, "how many jobs wait in the benchmarks of load")
	loadWorkers = flag.Int("load-workers", 20, "how many workers they are offered to")
)

// load is Ferry with its real caches, over API servers on which many jobs wait for quota on every worker.
type load struct {
	*wiring
	refs []kinds.Ref
}

// TestLookIsCheap: each worker is looked at for every job that waits, so what one costs is felt in a resync.
func TestLookIsCheap(t *testing.T) {
	l := newLoad(t, 10)
	i := 0
	allocations := testing.AllocsPerRun(200, func() {
		i++
		l.look(t, l.refs[i%len(l.refs)])
	})
	if most := float64(90 + 3**loadWorkers); allocations > most {
		t.Errorf("a look at a job takes %v allocations, more than %v", allocations, most)
	}
}

// BenchmarkLook is one look at a waiting job at rest: observe and decide.
func BenchmarkLook(b *testing.B) {
	l := newLoad(b, 100)
	b.ReportAllocs()
	before := cpu()
	for i := 0; b.Loop(); i++ {
		l.look(b, l.refs[i%len(l.refs)])
	}
	b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkResync is one period of the safety net over jobs that wait, all of them at rest.
func BenchmarkResync(b *testing.B) {
	l := newLoad(b, *loadJobs)
	sweep := &resync{wiring: l.wiring}
	before := cpu()
	for b.Loop() {
		refs := sweep.all(b.Context())
		if len(refs) != *loadJobs {
			b.Fatalf("%d looks at %d jobs", len(refs), *loadJobs)
		}
		for _, ref := range refs {
			l.look(b, ref)
		}
	}
	b.ReportMetric((cpu()-before).Seconds()/float64(b.N), "cpu-s/op")
}

// cpu is what this process has used; on a busy machine the time on the wall says nothing.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkMemory reports what stays on the heap for each waiting job, and for each of its copies.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		without := heap()
		l := newLoad(b, *loadJobs)
		all := heap() - without
		b.ReportMetric(float64(all)/float64(*loadJobs), "B/job")
		b.ReportMetric(float64(all)/(1<<20), "MiB")
		runtime.KeepAlive(l)
	}
}

func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (l *load) look(b testing.TB, ref kinds.Ref) {
	s, err := l.observer.Snapshot(b.Context(), ref)
	if err != nil {
		b.Fatal(err)
	}
	if p := plan.Decide(s); p.Rule != "Nominate" || len(p.Manager)+len(p.Workers) > 0 {
		b.Fatalf("%s is not at rest: %+v", ref, p)
	}
}

func newLoad(b testing.TB, n int) *load {
	b.Helper()
	ctx, end := context.WithCancel(b.Context())
	server := httptest.NewServer(&loadServer{jobs: n})
	b.Cleanup(func() {
		end()
		server.CloseClientConnections()
		server.Close()
	})
	c := &config.Configuration{}
	c.SetDefaults()
	c.Integrations.Frameworks = []string{"batch/job"}
	table := Table(c)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	core := startCore(ctx, b, cfg)
	w := &wiring{in: &inlet.Inlet[kinds.Ref]{}, log: logr.Discard()}
	var err error
	w.jobs, err = jobs.New(jobs.Options{
		Config: cfg, HTTP: http.DefaultClient, Scheme: newScheme(), Mapper: loadMapper(table), Kinds: table.GVKs(), Other: core, Lean: table.Lean,
		Index: jobs.Index{Field: observe.JobIndex, Extract: observe.OwnerIndex},
	})
	if err != nil {
		b.Fatal(err)
	}
	w.fleet = fleet.New(fleet.Options{
		Kinds: table.GVKs(), Origin: "me", Scheme: newScheme(), Index: kinds.CopyOf, Lean: kinds.LeanCopy,
	})
	w.observer = &observe.Observer{
		Manager: w.jobs, Fleet: w.fleet, Kinds: table, Memory: observe.NewMemory(), Clock: clock.RealClock{}, Policy: policy(c, "me", 90*time.Second),
	}
	w.dispatch = &dispatch.Reconciler{Observer: w.observer}
	w.lanes = &lane.Lanes{Observer: w.observer}
	go func() { _ = w.jobs.Start(ctx) }()
	go func() { _ = w.fleet.Start(ctx) }()
	for i := range *loadWorkers {
		w.fleet.Set(workerName(i), &rest.Config{Host: server.URL + "/" + workerName(i)}, "1")
	}
	l := &load{wiring: w}
	core.WaitForCacheSync(ctx)
	l.await(b)
	l.refs = w.dispatch.Unfinished(ctx)
	return l
}

// await returns once all jobs can be read, everywhere.
func (l *load) await(b testing.TB) {
	b.Helper()
	l.jobs.Await(b.Context())
	for i := range *loadWorkers {
		for l.fleet.Status(workerName(i)).Reach != fleet.Connected {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func startCore(ctx context.Context, b testing.TB, cfg *rest.Config) cache.Cache {
	b.Helper()
	core, err := cache.New(cfg, cache.Options{Scheme: newScheme(), Mapper: loadMapper(nil), DefaultTransform: leanWorkload})
	if err != nil {
		b.Fatal(err)
	}
	if err := core.IndexField(ctx, &kueue.Workload{}, observe.JobIndex, observe.OwnerIndex); err != nil {
		b.Fatal(err)
	}
	go func() { _ = core.Start(ctx) }()
	for _, obj := range loadedKinds() {
		if _, err := core.GetInformer(ctx, obj); err != nil {
			b.Fatal(err)
		}
	}
	return core
}

func loadMapper(table *kinds.Table) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	if table != nil {
		for _, gvk := range table.GVKs() {
			m.Add(gvk, meta.RESTScopeNamespace)
		}
	}
	m.Add(kueue.SchemeGroupVersion.WithKind("Workload"), meta.RESTScopeNamespace)
	m.Add(kueue.SchemeGroupVersion.WithKind("LocalQueue"), meta.RESTScopeNamespace)
	m.Add(kueue.SchemeGroupVersion.WithKind("AdmissionCheck"), meta.RESTScopeRoot)
	m.Add(kueue.SchemeGroupVersion.WithKind("MultiKueueConfig"), meta.RESTScopeRoot)
	return m
}

func workerName(i int) string { return fmt.Sprintf("w%d", i) }

// loadServer is as much of a manager, and of workers below /w0/, /w1/ and so on, as it takes to fill the caches.
type loadServer struct{ jobs int }

// ServeHTTP implements http.Handler.
func (s *loadServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	worker := ""
	if strings.HasPrefix(path[0], "w") {
		worker, path = path[0], path[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	resource := path[len(path)-1]
	switch {
	case resource == "readyz":
	case resource == "v1":
		_ = out.Encode(discovered())
	case r.URL.Query().Get("sendInitialEvents") == "true":
		s.objects(worker, resource, func(obj any) { _ = out.Encode(map[string]any{"type": "ADDED", "object": obj}) })
		_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": bookmark(resource, r)})
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Query().Get("watch") == "true":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		_ = out.Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
	}
}
