package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// Options configure a Fleet. Zero values get the defaults named here.
type Options struct {
	// Kinds are the job kinds to watch on every worker.
	Kinds []schema.GroupVersionKind
	// Unnamed are those of them of which only the objects with our origin are watched: others are too many.
	Unnamed []schema.GroupVersionKind
	// Origin is the value of the origin label; only objects with it are read in full.
	Origin string
	// Scheme must know Kueue's v1beta2.
	Scheme *runtime.Scheme
	// Index lets the cached objects of ours be found by their job; nil if they need not be.
	Index Index
	// Lean takes out of a worker's Workload of ours what nobody reads, before it is cached; nil: nothing.
	Lean func(worker string, wl *kueue.Workload)
	// QPS and Burst bound the requests of one worker, all kinds together; 200 and 400. Probes do not count.
	// A negative QPS lifts the limit.
	QPS   float32
	Burst int
	// RequestTimeout bounds every single request; a list, and a watch that begins with one, only while nothing of it
	// comes; 30 s.
	RequestTimeout time.Duration
	// SyncTimeout bounds connecting, from the first probe to synced Workload and LocalQueue caches, while nothing more
	// of these comes; 60 s.
	SyncTimeout time.Duration
	// ProbeInterval is the time between two probes; 5 s.
	ProbeInterval time.Duration
	// ProbeTimeout bounds one probe; 5 s.
	ProbeTimeout time.Duration
	// FailureThreshold is the number of failed probes in a row that make a loss; 3.
	FailureThreshold int
	// KindRecheck is the time after which a kind that could not be used is tried again; 30 s.
	KindRecheck time.Duration
	// KindGrace is how long a new connection waits for the job kinds' first answer before it counts as Connected
	// without them; 3 s.
	KindGrace time.Duration
	// Backoff is the wait between two attempts to connect.
	Backoff Backoff
	// Events tells of changes.
	Events Events
	Log    logr.Logger
	Clock  clock.WithTicker
	// UserAgent is sent to workers; "ferry".
	UserAgent string

	connect connector // replaced in tests
	shared  *shared

	queuesWanted chan struct{} // closed by wantQueues
	wantQueues   func()
}

// Index gives the job by which Conn.FindAll finds an object, if it has one. It must be cheap.
type Index func(metav1.Object) (kinds.Ref, bool)

// Backoff doubles from Initial to Max; 1 s and 30 s.
type Backoff struct{ Initial, Max time.Duration }

// Events are told as they happen. They must be quick, and any may be nil.
type Events struct {
	// Changed tells that an object of ours changed or was deleted in a worker's cache; called on informer
	// goroutines. An object that was created or deleted in Names comes as PartialObjectMetadata.
	Changed func(worker string, obj client.Object)
	// Queues tells that a ClusterQueue, Cohort or ResourceFlavor of a worker changed or was deleted, or, without an
	// object, that they can be read now or no longer. Nothing is told before Fleet.ReadQueues.
	Queues func(worker string, obj client.Object)
	// State tells that a worker was connected, suspected, lost or removed, or that the kinds it serves changed. The
	// calls for one worker come one after the other.
	State func(worker string, s Status)
}

// connector makes one connection. It returns only when the connection is usable, or with an error; it gives up when
// ctx ends. The connection lives until its close is called.
type connector func(ctx context.Context, target target) (link, error)

// target is everything that one attempt to connect depends on.
type target struct {
	worker  string
	config  *rest.Config
	limiter flowcontrol.RateLimiter
	options *Options
	signals signals
}

// signals are how a link reports back to the worker that owns it.
type signals struct {
	broken  func(error) // cannot go on: 401, 403 or 404 on what Ferry cannot do without
	trouble func()      // a watch failed: probe soon
	kinds   func()      // the served kinds changed
	moved   func()      // more has come of what is read before the connection is usable
}

// link is a Conn together with what only its owner may do.
type link interface {
	Conn
	// probe asks whether the worker still answers; a deep one lists, as the caches do.
	probe(ctx context.Context, deep bool) error
	// renew lets further requests log in as config says, which differs in nothing else. Caches and watches go on.
	renew(config *rest.Config) error
	// close ends every request, watch and goroutine of the connection, and returns when they have ended.
	close()
}

// FirstConnect is how long it may take to connect to a worker that answers: an attempt, or one that fails as the
// network is not up yet, the wait, and another.
func (o Options) FirstConnect() time.Duration {
	o = o.withDefaults()
	return o.SyncTimeout + o.Backoff.Max
}

func (o Options) withDefaults() Options {
	fill(&o.QPS, 200)
	fill(&o.Burst, 400)
	fill(&o.RequestTimeout, 30*time.Second)
	fill(&o.SyncTimeout, time.Minute)
	fill(&o.ProbeInterval, 5*time.Second)
	fill(&o.ProbeTimeout, 5*time.Second)
	fill(&o.FailureThreshold, 3)
	fill(&o.KindRecheck, 30*time.Second)
	fill(&o.KindGrace, 3*time.Second)
	fill(&o.Backoff.Initial, time.Second)
	fill(&o.Backoff.Max, 30*time.Second)
	fill(&o.UserAgent, "ferry")
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	if o.Events.Changed == nil {
		o.Events.Changed = func(string, client.Object) {}
	}
	if o.Events.Queues == nil {
		o.Events.Queues = func(string, client.Object) {}
	}
	if o.Events.State == nil {
		o.Events.State = func(string, Status) {}
	}
	if o.Lean == nil {
		o.Lean = func(string, *kueue.Workload) {}
	}
	o.shared = &shared{}
	wanted := make(chan struct{})
	o.queuesWanted, o.wantQueues = wanted, sync.OnceFunc(func() { close(wanted) })
	if o.connect == nil {
		o.connect = dial
	}
	return o
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
