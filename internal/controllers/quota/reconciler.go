// Package quota keeps the quota of the manager's ClusterQueues at what the workers have, where a MultiKueueConfig asks for it.
package quota

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/quota"
)

// owner is the field manager of the quotas that Ferry writes: once it has lost them, somebody else wrote others.
const owner = "ferry-quota"

const (
	// batch is the least time between two looks at a queue. The workers' queues change with every admission there.
	batch = 200 * time.Millisecond
	// conflictDelay is the wait before another attempt when somebody else wrote the queue at the same moment.
	conflictDelay = 200 * time.Millisecond
)

// Fleet is what the controller needs of the connections to the workers.
type Fleet interface {
	fleet.View
	ReadQueues()
}

// Reconciler writes the nominal quotas of ClusterQueues, and the condition MultiKueueManagerQuotaAutomation.
type Reconciler struct {
	Client client.Client // of the manager
	Live   client.Reader // of the manager, not from a cache
	Fleet  Fleet
	Clock  clock.PassiveClock
	// LostTimeout is how long the quota of a worker out of reach still counts; FirstConnect, how long that of one is
	// waited for at least which was never connected.
	LostTimeout, FirstConnect time.Duration

	mu     sync.Mutex
	follow map[string]*followed // by name of the queue: those that a config wants to follow the workers
}

// followed is what is remembered of a queue.
type followed struct {
	looked     time.Time
	generation int64 // for which editor holds
	editor     string
}

// Followed are the requests for all queues that follow the workers.
func (r *Reconciler) Followed() []reconcile.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := make([]reconcile.Request, 0, len(r.follow))
	for name := range r.follow {
		requests = append(requests, request(name))
	}
	return requests
}

func request(queue string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: queue}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if left := r.tooSoon(req.Name); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	cq := &kueue.ClusterQueue{}
	if err := r.Client.Get(ctx, req.NamespacedName, cq); err != nil {
		r.note(req.Name, false)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	asked, again, err := r.ask(ctx, cq)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.note(cq.Name, asked.Automated)
	wrote, err := r.carryOut(ctx, asked)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("following the workers' quota with ClusterQueue %s: %w", cq.Name, err)
	case wrote:
		ctrl.LoggerFrom(ctx).Info("Changed the quota to what the workers have", "clusterQueue", cq.Name)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// tooSoon is the time until the queue may be looked at again.
func (r *Reconciler) tooSoon(queue string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, found := r.follow[queue]
	if !found {
		return 0
	}
	now := r.Clock.Now()
	if left := f.looked.Add(batch).Sub(now); left > 0 {
		return left
	}
	f.looked = now
	return 0
}

// note remembers whether a queue follows the workers.
func (r *Reconciler) note(queue string, follows bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch _, known := r.follow[queue]; {
	case !follows:
		delete(r.follow, queue)
	case !known:
		if r.follow == nil {
			r.follow = map[string]*followed{}
		}
		r.follow[queue] = &followed{looked: r.Clock.Now()}
		r.Fleet.ReadQueues()
	}
}

// carryOut decides, and writes what differs; wrote tells whether the quota did.
func (r *Reconciler) carryOut(ctx context.Context, asked quota.Request) (wrote bool, err error) {
	decided := quota.Decide(asked)
	if decided.Groups != nil {
		if err := r.findEditor(ctx, &asked); err != nil {
			return false, err
		}
		decided = quota.Decide(asked)
	}
	if decided.Groups != nil {
		if err := r.write(ctx, &asked, decided.Groups); err != nil {
			return false, err
		}
		wrote = true
	}
	return wrote, r.tell(ctx, asked.Queue, decided)
}

// findEditor reads the queue as it is now, and who changed its resource groups after Ferry.
func (r *Reconciler) findEditor(ctx context.Context, asked *quota.Request) error {
	r.mu.Lock()
	known := r.follow[asked.Queue.Name]
	if known != nil && known.editor != "" && known.generation == asked.Queue.Generation {
		asked.Editor = known.editor
	}
	r.mu.Unlock()
	if asked.Editor != "" {
		return nil
	}
	live := &kueue.ClusterQueue{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(asked.Queue), live); err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	asked.Queue, asked.Editor = live, editorOf(live.ManagedFields)
	r.mu.Lock()
	defer r.mu.Unlock()
	if known != nil {
		known.generation, known.editor = live.Generation, asked.Editor
	}
	return nil
}

// write applies the quotas. The resource version is a lock: whoever wrote since may be an editor.
func (r *Reconciler) write(ctx context.Context, asked *quota.Request, groups []kueue.ResourceGroup) error {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kueue.ClusterQueueSpec{ResourceGroups: groups})
	if err != nil {
		return fmt.Errorf("writing its quota: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceGroups": raw["resourceGroups"]}}}
	u.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("ClusterQueue"))
	u.SetName(asked.Queue.Name)
	u.SetUID(asked.Queue.UID)
	u.SetResourceVersion(asked.Queue.ResourceVersion)
	if err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing its quota: %w", err)
	}
	written := &kueue.ClusterQueue{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, written); err != nil {
		return fmt.Errorf("reading what was written: %w", err)
	}
	asked.Queue = written
	return nil
}

// tell writes the condition where it differs.
func (r *Reconciler) tell(ctx context.Context, cq *kueue.ClusterQueue, decided quota.Decision) error {
	before := cq.DeepCopy()
	var changed bool
	switch {
	case decided.Forget:
		changed = meta.RemoveStatusCondition(&cq.Status.Conditions, kueue.MultiKueueManagerQuotaAutomation)
	case decided.Condition != nil:
		condition := *decided.Condition
		condition.ObservedGeneration = cq.Generation
		changed = meta.SetStatusCondition(&cq.Status.Conditions, condition)
	}
	if !changed {
		return nil
	}
	// The lock: a merge patch replaces the whole list, also a condition that somebody else has just added.
	if err := r.Client.Status().Patch(ctx, cq, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing its condition: %w", err)
	}
	return nil
}

// editorOf is the last that wrote the resource groups, if that was not Ferry.
func editorOf(fields []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		if !ownsGroups(fields[i].FieldsV1) {
			continue
		}
		if fields[i].Manager == owner {
			return ""
		}
		if last == nil || last.Time == nil || fields[i].Time != nil && last.Time.Before(fields[i].Time) {
			last = &fields[i]
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}
