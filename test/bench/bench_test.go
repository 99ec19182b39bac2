// Package bench measures dispatch on the playground: Ferry and stock MultiKueue in one run, since only ratios of one run mean something on a shared machine.
package bench

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/test/fixtures"
)

var (
	workers = flag.Int("workers", 3, "worker clusters")
	single  = flag.Int("single", 20, "jobs submitted one at a time, for the latency on a quiet system")
	burst   = flag.Int("burst", 100, "jobs submitted at once, for the throughput")
)

const namespace = "bench"

// BenchmarkDispatch reports, for Ferry, for Ferry that asks the best worker first, and for MultiKueue: the latency from the quota
// reservation on the manager to the Job object on a worker, the time from the
// first submission of a burst until every job of it is on a worker, the
// dispatcher's own API requests per job, and the copies of Workloads that it makes.
func BenchmarkDispatch(b *testing.B) {
	for _, s := range []system{
		{name: "ferry", user: playground.UserFerry, options: playground.Options{Ferry: true}},
		{name: "ferry-best", user: playground.UserFerry, options: playground.Options{Ferry: true}, dispatcher: placement.BestName},
		{name: "multikueue", user: playground.UserMultiKueue, options: playground.Options{StockMultiKueue: true}},
	} {
		b.Run(s.name, s.measure)
	}
}

// system is one of the dispatchers.
type system struct {
	name       string
	user       string // who writes to the workers
	options    playground.Options
	dispatcher string // of the MultiKueueConfig; empty: the default
}

func (s system) measure(b *testing.B) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	p := s.start(ctx, b)
	for b.Loop() {
		s.oneAtATime(ctx, b, p)
		s.allAtOnce(ctx, b, p)
	}
}

func (s system) start(ctx context.Context, b *testing.B) *playground.Playground {
	o := s.options
	o.Name, o.Workers, o.JobRunsFor, o.Progress = "bench-"+s.name, *workers, time.Second, b.Output()
	p, err := playground.Start(ctx, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.Stop() })
	queues := fixtures.Queues(namespace, fixtures.ManagerCPU("10k"), fixtures.WorkerCPU("10k"))
	if err := p.InstallQueues(ctx, queues); err != nil {
		b.Fatal(err)
	}
	if s.dispatcher != "" {
		config := &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: queues.Check}}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, placement.DispatcherAnnotation, s.dispatcher)
		if err := p.Manager().Client().Patch(ctx, config, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func (s system) oneAtATime(ctx context.Context, b *testing.B, p *playground.Playground) {
	since := time.Now()
	var names []string
	for i := range *single {
		name := fmt.Sprintf("single-%d", i)
		names = append(names, name)
		submit(ctx, b, p, name)
		awaitFinished(ctx, b, p, name)
	}
	log := read(b, p, since)
	var latencies []time.Duration
	for _, name := range names {
		latencies = append(latencies, log.latency(b, s.user, name))
	}
	b.ReportMetric(milliseconds(median(latencies)), "ms/dispatch")
	b.ReportMetric(float64(log.requests(s.user, "manager"))/float64(*single), "manager-requests/job")
	b.ReportMetric(float64(log.requests(s.user, "w"))/float64(*single), "worker-requests/job")
	b.ReportMetric(float64(log.copies(s.user))/float64(*single), "copies/job")
}

func (s system) allAtOnce(ctx context.Context, b *testing.B, p *playground.Playground) {
	since := time.Now()
	var names []string
	for i := range *burst {
		names = append(names, fmt.Sprintf("burst-%d", i))
		submit(ctx, b, p, names[i])
	}
	for _, name := range names {
		awaitFinished(ctx, b, p, name)
	}
	log := read(b, p, since)
	last := since
	for _, name := range names {
		if placed := log.placed(b, s.user, name); placed.After(last) {
			last = placed
		}
	}
	b.ReportMetric(float64(*burst)/last.Sub(since).Seconds(), "burst-jobs/s")
}

func submit(ctx context.Context, b *testing.B, p *playground.Playground, name string) {
	if err := p.Manager().Client().Create(ctx, fixtures.Job(namespace, name)); err != nil {
		b.Fatal(err)
	}
}

func awaitFinished(ctx context.Context, b *testing.B, p *playground.Playground, name string) {
	job := &batchv1.Job{}
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := p.Manager().Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job)
		return err == nil && job.Status.CompletionTime != nil, err
	})
	if err != nil {
		b.Fatalf("job %s did not finish: %v", name, err)
	}
}
