// Package world lets Ferry's real controllers run over clusters in memory, one step at a time.
package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
)

// Names that every world has.
const (
	Namespace = "default"
	Origin    = "manager-1"
	Check     = "ferry"
	Config    = "workers"
	QueueName = "main"
	// ManagerName stands for the manager where a worker's name could stand too.
	ManagerName = "manager"
)

// Options are what a world begins with.
type Options struct {
	Workers    []string
	Dispatcher string
	StepSize   int
	Round      time.Duration
	// Checks are other admission checks, beside Ferry's.
	Checks []string
	// Capacity is how many Workloads a worker runs at once.
	Capacity int
	// LostTimeout is workerLostTimeout.
	LostTimeout time.Duration
	// PreemptionTimeout is the policy's; zero: preemption is not orchestrated.
	PreemptionTimeout time.Duration
	// Retain is how long finished copies stay on their worker.
	Retain time.Duration
	// Liar adds one, see there.
	Liar bool
	// Rand drives faults; nil for none.
	Rand *rand.Rand
}

// Worker is a worker cluster, with what joins it to Ferry.
type Worker struct {
	Name    string
	Cluster *cluster.Cluster
	Kueue   *kueuemodel.Model
	// Cut is set while no request gets through.
	Cut       bool
	link      *link
	lostSince time.Time
	// leaving is set while the MultiKueueCluster is being deleted, which Ferry holds until nothing of it is left there.
	leaving bool
	// seen is set once the present life of Ferry was connected.
	seen bool
}

// World is everything: clusters, Kueue on each, users, the network, and Ferry.
type World struct {
	Clock   *clocktesting.FakePassiveClock
	Manager *cluster.Cluster
	Kueue   *kueuemodel.Model
	Faults  Faults
	// Held names the clusters whose events are kept back.
	Held map[string]bool
	// Writes counts the requests that Ferry made, Requests the ones that changed a cluster.
	Writes int
	// Most is how often Ferry made one request, MostOf, without time passing.
	Most   int
	MostOf string
	// Rules are the names of the rules that decided, in their order, by job.
	Rules map[kinds.Ref][]string
	// Events are what Ferry told users, since TakeEvents.
	events     []string
	names      []string
	workers    map[string]*Worker
	configured []string
	// kinds are those of the jobs by name, see Call.
	kinds      map[string]schema.GroupVersionKind
	ferry      *ferry
	policy     plan.Policy
	trace      []string
	countedAt  time.Time
	times      map[string]int
	violations []string
	book       *book
	late       []lateWrite
	rand       *rand.Rand
	depth      int
	// unread is set while Ferry cannot read the manager's jobs.
	unread bool
	// slow names who seldom gets a turn, like "lane w1".
	slow string
	// refuses is set once the manager refused a status for good: then the result is the Workload's alone.
	refuses bool
	// moved is set when the world moved on while a write was on its way.
	moved bool
}

type lateWrite struct {
	worker *Worker
	what   string
	run    func() error
}

// New makes a world in which Ferry is up and connected to all workers.
func New(o Options) *World {
	w := &World{
		Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
		Rules: map[kinds.Ref][]string{}, workers: map[string]*Worker{}, rand: o.Rand, book: newBook(),
		Held: map[string]bool{}, kinds: map[string]schema.GroupVersionKind{},
	}
	w.policy = plan.Policy{
		Origin: Origin, Dispatcher: o.Dispatcher, WorkerLostTimeout: o.LostTimeout, PlaceTimeout: time.Minute, StartTimeout: 5 * time.Minute, Retain: o.Retain, PreemptionTimeout: o.PreemptionTimeout, FirstConnect: 90 * time.Second,
		Placement: placement.ByName(o.Dispatcher, placement.Incremental{StepSize: o.StepSize, Round: o.Round}, placement.Best{AtOnce: 1, After: o.Round, Weights: placement.Weights{Fits: 100, Free: 10}}),
	}
	w.Manager = cluster.New("", 1000, w.Clock, w.Violation)
	w.Kueue = &kueuemodel.Model{Cluster: w.Manager, Manager: true, Capacity: 1000, Checks: []kueue.AdmissionCheckReference{Check}}
	for _, name := range o.Checks {
		w.Kueue.Checks = append(w.Kueue.Checks, kueue.AdmissionCheckReference(name))
		w.makeCheck(name, "example.com/other", "")
	}
	w.makeCheck(Check, kueue.MultiKueueControllerName, Config)
	for i, name := range o.Workers {
		w.addWorker(name, int64(i+2)*100000, o.Capacity)
	}
	if o.Liar {
		w.addWorker(Liar, int64(len(o.Workers)+2)*100000, o.Capacity)
	}
	w.configured = slices.Clone(w.names)
	_, _ = w.Manager.Create(&kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Name: Config}, Spec: kueue.MultiKueueConfigSpec{Clusters: o.Workers}})
	w.Manager.Watch(w.noteManager)
	w.StartFerry()
	for _, name := range w.names {
		w.Connect(name)
		w.SyncJobs(name)
	}
	return w
}

func (w *World) makeCheck(name, controller, config string) {
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.AdmissionCheckSpec{ControllerName: controller}}
	if config != "" {
		check.Spec.Parameters = &kueue.AdmissionCheckParametersReference{APIGroup: kueue.SchemeGroupVersion.Group, Kind: "MultiKueueConfig", Name: config}
	}
	_, _ = w.Manager.Create(check)
}

func (w *World) addWorker(name string, firstVersion int64, capacity int) {
	c := cluster.New(name, firstVersion, w.Clock, w.Violation)
	worker := &Worker{Name: name, Cluster: c, Kueue: &kueuemodel.Model{Cluster: c, Capacity: max(capacity, 1)}, lostSince: w.Clock.Now()}
	_, _ = c.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: QueueName}})
	w.workers[name] = worker
	w.names = append(w.names, name)
	c.Watch(func(e cluster.Event) { w.noteWorker(worker, e) })
}

// Names lists the workers in the order of their making.
func (w *World) Names() []string { return w.names }

// Worker returns a worker; nil when there is none of that name.
func (w *World) Worker(name string) *Worker { return w.workers[name] }

// Call says of what kind the job of a name is; those of which nothing is said are batch Jobs.
func (w *World) Call(name string, kind schema.GroupVersionKind) { w.kinds[name] = kind }

// refOf is the reference of the job of this name.
func (w *World) refOf(name string) kinds.Ref {
	return kinds.Ref{Kind: w.kindOf(name).GroupKind().String(), Namespace: Namespace, Name: name}
}

func (w *World) kindOf(name string) schema.GroupVersionKind {
	if kind, said := w.kinds[name]; said {
		return kind
	}
	return cluster.Job
}

// Violation notes that something happened that never may.
func (w *World) Violation(format string, args ...any) {
	v := fmt.Sprintf(format, args...)
	w.violations = append(w.violations, v)
	w.Tracef("VIOLATION: %s", v)
}

// Violations lists what went wrong so far.
func (w *World) Violations() []string { return w.violations }

// Tracef notes what happened.
func (w *World) Tracef(format string, args ...any) {
	w.trace = append(w.trace, w.Clock.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// Trace returns the last n notes.
func (w *World) Trace(n int) []string { return w.trace[max(0, len(w.trace)-n):] }

// TakeEvents returns Ferry's events since the last call.
func (w *World) TakeEvents() []string {
	events := w.events
	w.events = nil
	return events
}

// Workload is the manager's Workload of the job of this name, the first of several; nil when
// there is none. A name like set/1 is that of the Workload of a set's replica.
func (w *World) Workload(name string) *kueue.Workload { return first(w.Workloads(name)) }

// Workloads are the manager's Workloads of the job of this name.
func (w *World) Workloads(name string) []*kueue.Workload {
	name, replica, _ := strings.Cut(name, "/")
	job := w.Manager.Job(Namespace, name)
	if job == nil {
		return nil
	}
	return ofReplica(w.Kueue.WorkloadsOf(job), replica)
}

// Copy is the Workload of the job of this name on a worker, the first of several; nil when there is none.
func (w *World) Copy(worker, name string) *kueue.Workload { return first(w.Copies(worker, name)) }

// Copies are the Workloads of the job of this name on a worker.
func (w *World) Copies(worker, name string) []*kueue.Workload {
	name, replica, _ := strings.Cut(name, "/")
	var copies []*kueue.Workload
	for _, obj := range w.workers[worker].Cluster.List("Workload") {
		if ref, isCopy := kinds.CopyOf(obj); isCopy && ref.Name == name && ours(obj) {
			copies = append(copies, obj.(*kueue.Workload))
		}
	}
	return ofReplica(copies, replica)
}

func first(wls []*kueue.Workload) *kueue.Workload {
	if len(wls) == 0 {
		return nil
	}
	return wls[0]
}

// ofReplica picks the Workload of a replica, if one is asked for.
func ofReplica(wls []*kueue.Workload, replica string) []*kueue.Workload {
	if replica == "" {
		return wls
	}
	return slices.DeleteFunc(wls, func(wl *kueue.Workload) bool { return strconv.Itoa(kinds.ReplicaOf(wl)) != replica })
}

// JobOn is the job of this name on a worker; nil when there is none.
func (w *World) JobOn(worker, name string) *unstructured.Unstructured {
	return w.workers[worker].Cluster.Job(Namespace, name)
}

// Advance moves the time, and wakes what waits for it.
func (w *World) Advance(d time.Duration) {
	w.Clock.SetTime(w.Clock.Now().Add(d))
	if w.ferry != nil {
		w.ferry.wake()
	}
}
