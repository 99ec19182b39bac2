package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

var (
	// ErrStale says that an earlier copy of ours still holds the name on the worker.
	ErrStale = errors.New("an earlier copy is still there")
	// ErrGone says that what was to be changed is not there any more, which the cache does not show yet.
	ErrGone = errors.New("the copy is gone")
)

// OnWorker carries out one action on a worker; to is a live client of it.
func (a *Applier) OnWorker(ctx context.Context, worker string, to client.Client, ref kinds.Ref, action plan.Action) error {
	if err := a.onWorker(ctx, worker, to, ref, action); err != nil {
		return fmt.Errorf("%s on worker %s: %w", action, worker, err)
	}
	return nil
}

func (a *Applier) onWorker(ctx context.Context, worker string, to client.Client, ref kinds.Ref, action plan.Action) error {
	switch act := action.(type) {
	case plan.CreateWorkload:
		made, err := create(ctx, to, act.Copy.DeepCopy())
		if err == nil {
			a.Metrics.dispatched(act.ClusterQueue, worker)
		}
		return a.created(worker, ref, action, made, err)
	case plan.CreateJob:
		made, err := create(ctx, to, act.Copy.DeepCopy())
		return a.created(worker, ref, action, made, err)
	case plan.Delete:
		return a.remove(ctx, worker, to, ref, act)
	case plan.LookUp:
		return a.lookUp(ctx, worker, to, ref, act)
	case plan.AskWarnings:
		a.warnings(ctx, worker, to, ref, act)
		return nil
	default:
		return a.change(ctx, worker, to, ref, action)
	}
}

// change carries out an action that patches what is there.
func (a *Applier) change(ctx context.Context, worker string, to client.Client, ref kinds.Ref, action plan.Action) error {
	switch act := action.(type) {
	case plan.EditJob:
		return a.edit(ctx, worker, to, ref, act)
	case plan.Adopt:
		return a.adopt(ctx, worker, to, ref, act)
	case plan.MarkPods:
		return a.markPods(ctx, worker, to, ref, act)
	case plan.OwnWorkload:
		return a.ownWorkload(ctx, worker, to, ref, act)
	case plan.SetPriority:
		return a.setPriority(ctx, worker, to, ref, act)
	case plan.OpenGate:
		return a.openGate(ctx, worker, to, ref, act)
	case plan.Resize:
		return a.resize(ctx, worker, to, ref, act)
	case plan.LetGo:
		return a.letGo(ctx, worker, to, ref, act)
	default:
		return errors.New("this is not an action for a worker")
	}
}

// edit writes on what was seen only: a patch replaces lists whole, and would take back
// what Kueue or an operator wrote into one meanwhile.
func (a *Applier) edit(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.EditJob) error {
	job := act.Want.DeepCopy()
	err := to.Patch(ctx, job, client.MergeFromWithOptions(act.Copy, client.MergeFromWithOptimisticLock{}))
	return a.patched(worker, ref, job, err)
}

// patched remembers what a patch made of an object, or that it was not there to be patched.
func (a *Applier) patched(worker string, ref kinds.Ref, obj client.Object, err error) error {
	switch {
	case err == nil:
		obj.SetManagedFields(nil)
		a.Memory.Wrote(worker, ref, obj, a.Clock.Now())
		return nil
	case apierrors.IsNotFound(err):
		a.Memory.Gone(worker, ref, obj.GetUID())
		return ErrGone
	default:
		return err
	}
}

// created remembers what was made, or why it was not.
func (a *Applier) created(worker string, ref kinds.Ref, action plan.Action, made client.Object, err error) error {
	if err != nil {
		return a.refused(worker, ref, action, err)
	}
	a.Memory.Wrote(worker, ref, made, a.Clock.Now())
	return nil
}

// create makes obj, or finds that exactly this copy is there already.
func create[T client.Object](ctx context.Context, to client.Client, obj T) (T, error) {
	want, origin := obj.GetAnnotations(), obj.GetLabels()[kueue.MultiKueueOriginLabel]
	err := to.Create(ctx, obj)
	if err == nil {
		obj.SetManagedFields(nil)
		return obj, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return obj, err
	}
	if err := to.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		if apierrors.IsNotFound(err) {
			return obj, ErrStale
		}
		return obj, err
	}
	if !kinds.Ours(obj) || obj.GetLabels()[kueue.MultiKueueOriginLabel] != origin {
		return obj, foreign(obj)
	}
	is := obj.GetAnnotations()
	if twin := is[kinds.WorkerAnnotation]; twin != want[kinds.WorkerAnnotation] {
		return obj, foreignError{fmt.Sprintf("it is the same cluster as %s", twin)}
	}
	for _, mark := range []string{kueue.MultiKueueOriginUIDAnnotation, kinds.ReservationAnnotation} {
		if is[mark] != want[mark] {
			return obj, ErrStale
		}
	}
	obj.SetManagedFields(nil)
	return obj, nil
}

type foreignError struct{ what string }

func (e foreignError) Error() string { return e.what }

func foreign(obj client.Object) error {
	kind := "Workload"
	if u, ok := obj.(*unstructured.Unstructured); ok {
		kind = u.GetKind()
	}
	return foreignError{fmt.Sprintf("holds a %s of this name that Ferry did not create", kind)}
}

// Refused tells an answer that will be the same when the same is asked again
// from a fault that passes.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// Tell lets administrators and the job's user know what a worker refused. Events of one reason and verb about a worker
// are one event with a count.
func (a *Applier) Tell(worker string, ref kinds.Ref, wls []*kueue.Workload, action plan.Action, err error) {
	reasonOf, verb := "ChangeRefused", "Patch"
	switch action.(type) {
	case plan.CreateJob, plan.CreateWorkload:
		reasonOf, verb, wls = "CopyRefused", "Create", nil // the check says so
	case plan.Delete:
		verb = "Delete"
	}
	a.Recorder.Eventf(clusterReference(worker), nil, corev1.EventTypeWarning, reasonOf, verb, "%s", reason.Note(fmt.Sprintf("%s: %v", ref, err)))
	for _, wl := range wls {
		a.Recorder.Eventf(wl, nil, corev1.EventTypeWarning, reasonOf, verb, "%s", reason.Note(err.Error()))
	}
}

// TellOfManager lets administrators and the job's user know what the manager refused.
func (a *Applier) TellOfManager(wls []*kueue.Workload, action plan.Action, err error) {
	for _, wl := range wls {
		a.Recorder.Eventf(wl, nil, corev1.EventTypeWarning, "ChangeRefused", "Patch", "%s", reason.Note(reason.RefusedByManager(action.String(), err.Error())))
	}
}

// refused keeps the job off a worker that will not take its copy, whatever is
// tried, which the job's message says.
func (a *Applier) refused(worker string, ref kinds.Ref, action plan.Action, err error) error {
	var isForeign foreignError
	switch {
	case errors.As(err, &isForeign):
		a.Memory.Rest(worker, ref, plan.Rest{Worker: worker, Why: isForeign.what}, a.Clock.Now())
		return nil
	case Refused(err):
		a.Memory.Rest(worker, ref, plan.Rest{Worker: worker, Why: "refused the copy: " + reason.Brief(err.Error())}, a.Clock.Now())
	}
	return err
}

// clusterReference lets an event be about a MultiKueueCluster that nobody has read.
func clusterReference(worker string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: kueue.SchemeGroupVersion.String(), Kind: "MultiKueueCluster", Name: worker}
}

func (a *Applier) setPriority(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.SetPriority) error {
	wl := act.Copy.DeepCopy()
	wl.Spec.Priority = act.Priority
	return a.patched(worker, ref, wl, to.Patch(ctx, wl, client.MergeFrom(act.Copy)))
}

func (a *Applier) openGate(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.OpenGate) error {
	wl := act.Copy.DeepCopy()
	wl.Status.PreemptionGates = slices.DeleteFunc(wl.Status.PreemptionGates, func(g kueue.PreemptionGateState) bool { return g.Name == kinds.PreemptionGate })
	wl.Status.PreemptionGates = append(wl.Status.PreemptionGates, kueue.PreemptionGateState{
		Name: kinds.PreemptionGate, Position: kueue.PreemptionGatePositionOpen, LastTransitionTime: act.At,
	})
	err := to.Status().Patch(ctx, wl, client.MergeFromWithOptions(act.Copy, client.MergeFromWithOptimisticLock{}))
	return a.patched(worker, ref, wl, err)
}

// resize patches nothing but the sizes: a later version of the API may know fields of a pod set that this one does not.
func (a *Applier) resize(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.Resize) error {
	wl := act.Copy.DeepCopy()
	var patch []map[string]any
	for i, set := range act.PodSets {
		path := fmt.Sprintf("/spec/podSets/%d/", i)
		patch = append(patch, map[string]any{"op": "test", "path": path + "name", "value": set.Name},
			map[string]any{"op": "replace", "path": path + "count", "value": set.Count})
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("%s: encode the patch: %w", act, err)
	}
	return a.patched(worker, ref, wl, to.Patch(ctx, wl, client.RawPatch(types.JSONPatchType, raw)))
}

// ownWorkload may write a controller over one that is gone: a job that was deleted and made anew.
func (a *Applier) ownWorkload(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.OwnWorkload) error {
	wl := act.Copy.DeepCopy()
	wl.OwnerReferences = owners(act)
	err := to.Patch(ctx, wl, client.MergeFromWithOptions(act.Copy, client.MergeFromWithOptimisticLock{}))
	return a.patched(worker, ref, wl, err)
}

// owners block no deletion of the job: that would take a right that Ferry does not have.
func owners(act plan.OwnWorkload) []metav1.OwnerReference {
	gvk := act.Owner.GroupVersionKind()
	owner := metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: act.Owner.GetName(), UID: act.Owner.GetUID()}
	if act.Beside {
		return append(slices.Clone(act.Copy.OwnerReferences), owner)
	}
	owner.Controller = ptr.To(true)
	return []metav1.OwnerReference{owner}
}

// letGo leaves the finalizers of others alone.
func (a *Applier) letGo(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.LetGo) error {
	obj := act.Copy.DeepCopy()
	controllerutil.RemoveFinalizer(obj, act.Finalizer)
	err := to.Patch(ctx, obj, client.MergeFromWithOptions(act.Copy, client.MergeFromWithOptimisticLock{}))
	if err == nil && len(obj.GetFinalizers()) == 0 {
		// The patch was its end. To remember it as written would outlast what the watch may have said already.
		a.Memory.Gone(worker, ref, obj.GetUID())
		return nil
	}
	return a.patched(worker, ref, obj, err)
}

// remove deletes an object with its dependents, only as long as it is the one
// that the decision was about.
func (a *Applier) remove(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.Delete) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(act.GVK)
	obj.SetNamespace(act.Key.Namespace)
	obj.SetName(act.Key.Name)
	only := client.Preconditions{UID: &act.UID}
	if act.Version != "" {
		only.ResourceVersion = &act.Version
	}
	err := to.Delete(ctx, obj, only, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		a.Memory.Gone(worker, ref, act.UID)
	}
	a.Memory.Deleted(act.UID, a.Clock.Now())
	return nil
}
