package observe

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

const (
	// rebuildEvery is the least time between two readings of a worker's queues.
	rebuildEvery = 100 * time.Millisecond
	// statusLag is how late Kueue counts a reservation in its queue's status: it writes that once a second.
	statusLag = 1200 * time.Millisecond
	// offeredFor bounds how long an offer counts to which Kueue has not answered.
	offeredFor = 10 * time.Second
	// offersMost bounds how many of them one prediction looks at; the latest count.
	offersMost = 64
)

var clusterQueueKind = kueue.SchemeGroupVersion.WithKind("ClusterQueue")

// Capacity is what the workers' queues have, and what of it our copies take that the queues do not count yet. It knows
// nothing of a worker whose queues are not read; see fleet.ReadQueues.
type Capacity struct {
	mu      sync.Mutex
	workers map[string]*room
}

// room is one worker, as it was when its queues were read last.
type room struct {
	conn    fleet.Conn
	queues  *capacity.Worker
	read    time.Time
	stale   bool
	holders map[client.ObjectKey]holder
	offers  map[client.ObjectKey]offer
	// latest are the ClusterQueues as they were told last, by name.
	latest map[string]*kueue.ClusterQueue
}

// holder is a copy of ours that has quota.
type holder struct {
	capacity.Holder
	seen time.Time
}

// offer is a Workload that a worker was chosen for, without an answer.
type offer struct {
	wl *kueue.Workload
	at time.Time
}

// NewCapacity knows nothing yet.
func NewCapacity() *Capacity { return &Capacity{workers: map[string]*room{}} }

// Changed notes that a ClusterQueue, Cohort or ResourceFlavor of a worker is another now; nil: that they can be read, or no
// longer. It tells whether there may be more to have than before.
func (c *Capacity) Changed(worker string, now client.Object) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.workers[worker]
	if r == nil {
		return true
	}
	r.stale = true
	cq, ok := now.(*kueue.ClusterQueue)
	if !ok {
		return true
	}
	before := r.latest[cq.Name]
	r.latest[cq.Name] = cq
	return before == nil || before.Generation != cq.Generation || !equality.Semantic.DeepEqual(before.Status.Conditions, cq.Status.Conditions) || usesLess(before, cq)
}

// usesLess tells whether a queue uses less of anything than before.
func usesLess(before, now *kueue.ClusterQueue) bool {
	used := map[string]resource.Quantity{}
	for _, f := range now.Status.FlavorsReservation {
		for _, r := range f.Resources {
			used[string(f.Name)+"/"+string(r.Name)] = r.Total
		}
	}
	for _, f := range before.Status.FlavorsReservation {
		for _, r := range f.Resources {
			if left := used[string(f.Name)+"/"+string(r.Name)]; left.Cmp(r.Total) < 0 {
				return true
			}
		}
	}
	return false
}

// Lost forgets a worker: the next connection shows all anew.
func (c *Capacity) Lost(worker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.workers, worker)
}

// Offered notes whom a Workload of the manager is nominated for, before the copies are made.
func (c *Capacity) Offered(wl *kueue.Workload, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(wl)
	for name, r := range c.workers {
		_, known := r.offers[key]
		_, holds := r.holders[key]
		switch wanted := wl.Status.ClusterName == nil && slices.Contains(wl.Status.NominatedClusterNames, name); {
		case wanted && !known && !holds:
			r.offers[key] = offer{wl, now}
		case !wanted:
			delete(r.offers, key)
		}
	}
}

// SawCopy notes what has become of a copy of ours on a worker.
func (c *Capacity) SawCopy(worker string, seen *kueue.Workload, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.workers[worker]
	if r == nil {
		return
	}
	key := client.ObjectKeyFromObject(seen)
	obj, err := r.conn.Find(workloadKind, key.String())
	wl, found := obj.(*kueue.Workload)
	if err != nil || !found {
		delete(r.holders, key)
		delete(r.offers, key)
		return
	}
	r.note(key, wl, now)
}

func (r *room) note(key client.ObjectKey, wl *kueue.Workload, now time.Time) {
	reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil {
		return
	}
	delete(r.offers, key)
	if wl.Status.Admission == nil || Finished(wl) {
		delete(r.holders, key)
		return
	}
	h := holder{seen: now, Holder: capacity.Holder{
		Queue: wl.Status.Admission.ClusterQueue, Priority: priorityOf(wl), Created: wl.CreationTimestamp.Time, Holds: capacity.HoldsOf(wl.Status.Admission),
	}}
	if before, had := r.holders[key]; had {
		h.seen = before.seen
	}
	r.holders[key] = h
}

func priorityOf(wl *kueue.Workload) int32 {
	if wl.Spec.Priority == nil {
		return 0
	}
	return *wl.Spec.Priority
}

// fit predicts how well the job's Workloads that wait for a worker would fit there: the worst of them counts.
func (c *Capacity) fit(conn fleet.Conn, s *look, worker string) capacity.Fit {
	unknown := capacity.Fit{Class: capacity.Unknown}
	worst := unknown
	waiting := 0
	for _, wl := range s.Workloads {
		if wl.Status.ClusterName != nil || wl.Status.Admission == nil || Finished(wl) {
			continue
		}
		fit, known := c.fitOf(conn, worker, wl, s.Now)
		if !known {
			return unknown
		}
		if waiting++; waiting == 1 || fit.Class > worst.Class {
			worst = fit
		}
	}
	return worst
}

func (c *Capacity) fitOf(conn fleet.Conn, worker string, wl *kueue.Workload, now time.Time) (capacity.Fit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.room(conn, worker, now)
	if r == nil {
		return capacity.Fit{}, false
	}
	request, err := r.request(wl)
	if err != nil {
		return capacity.Fit{}, false
	}
	return r.queues.Predict(request, r.known(client.ObjectKeyFromObject(wl), now), r.offered(wl, now)), true
}

// request is what a Workload of the manager would ask of its queue there.
func (r *room) request(wl *kueue.Workload) (capacity.Request, error) {
	out := capacity.Request{
		PodSets: wl.Spec.PodSets, Reclaimable: wl.Status.ReclaimablePods, Priority: priorityOf(wl), Created: wl.CreationTimestamp.Time, Counted: countedBy(wl.Status.Admission),
	}
	obj, err := r.conn.Find(queueKind, client.ObjectKey{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}.String())
	if local, ok := obj.(*kueue.LocalQueue); ok {
		out.Queue = local
	}
	return out, err
}

// countedBy are the resources that Kueue on the manager counts.
func countedBy(admission *kueue.Admission) map[corev1.ResourceName]bool {
	if admission == nil {
		return nil
	}
	counted := map[corev1.ResourceName]bool{}
	for _, set := range admission.PodSetAssignments {
		for name := range set.Flavors {
			counted[name] = true
		}
	}
	return counted
}

// room is the worker's, read anew where it changed; nil where it cannot be read. The lock is held.
func (c *Capacity) room(conn fleet.Conn, worker string, now time.Time) *room {
	if served, _ := conn.Serves(clusterQueueKind); !served {
		return nil
	}
	r := c.workers[worker]
	if r == nil || r.conn != conn {
		r = &room{conn: conn, stale: true, holders: map[client.ObjectKey]holder{}, offers: map[client.ObjectKey]offer{}, latest: map[string]*kueue.ClusterQueue{}}
		if !r.noteAll() {
			return nil
		}
	}
	if r.stale && now.Sub(r.read) >= rebuildEvery {
		queues, err := readQueues(conn)
		if err != nil {
			return nil
		}
		r.queues, r.read, r.stale = queues, now, false
	}
	c.workers[worker] = r
	return r
}

// noteAll notes the copies that the worker holds already: their queues count them.
func (r *room) noteAll() bool {
	all := &kueue.WorkloadList{}
	if err := r.conn.Reader().List(context.Background(), all, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	for i := range all.Items {
		r.note(client.ObjectKeyFromObject(&all.Items[i]), &all.Items[i], time.Time{})
	}
	return true
}

// readQueues reads what a worker has, from its cache.
func readQueues(conn fleet.Conn) (*capacity.Worker, error) {
	ctx, reader := context.Background(), conn.Reader()
	queues, cohorts, flavors := &kueue.ClusterQueueList{}, &kueue.CohortList{}, &kueue.ResourceFlavorList{}
	for _, list := range []client.ObjectList{queues, cohorts, flavors} {
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err // a worker without the right to one of them is one of which nothing is known
		}
	}
	return capacity.NewWorker(pointers(queues.Items), pointers(cohorts.Items), pointers(flavors.Items)), nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// Quotas are the numbers of a worker's queues; none where they are not read.
func (o *Observer) Quotas(worker string) []capacity.Quota {
	conn, reachable := o.Fleet.Conn(worker)
	if !reachable {
		return nil
	}
	if served, _ := conn.Serves(clusterQueueKind); !served {
		return nil
	}
	queues, err := readQueues(conn)
	if err != nil {
		return nil
	}
	return queues.Quotas()
}

// known are the copies with quota besides one's own. Its queue's status is late.
func (r *room) known(but client.ObjectKey, now time.Time) []capacity.Holder {
	all := make([]capacity.Holder, 0, len(r.holders))
	for key, h := range r.holders {
		if key != but {
			h.Visible = now.Sub(h.seen) > statusLag
			all = append(all, h.Holder)
		}
	}
	return all
}

// offered are those that wait for an answer besides wl, the latest first.
func (r *room) offered(wl *kueue.Workload, now time.Time) []capacity.Request {
	var open []offer
	for key, o := range r.offers {
		switch {
		case now.Sub(o.at) > offeredFor:
			delete(r.offers, key)
		case key != client.ObjectKeyFromObject(wl) && priorityOf(o.wl) >= priorityOf(wl):
			open = append(open, o)
		}
	}
	slices.SortFunc(open, func(a, b offer) int { return b.at.Compare(a.at) })
	var all []capacity.Request
	for _, o := range open[:min(len(open), offersMost)] {
		if request, err := r.request(o.wl); err == nil {
			all = append(all, request)
		}
	}
	return all
}

// predict adds what the worker's queue has for a job that waits for a worker, if its placement goes by that.
func (o *Observer) predict(conn fleet.Conn, s *look, w *plan.Worker) {
	if _, byFit := s.Policy.Placement.(placement.Best); byFit && w.Serves && w.InConfig {
		w.Fit = o.Memory.Capacity.fit(conn, s, w.Name)
	}
}
