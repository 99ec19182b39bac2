package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

// mirror patches the job's status. The lock matters: a status that fits a
// running job must not land on one that was suspended a moment ago.
func (a *Applier) mirror(ctx context.Context, ref kinds.Ref, act plan.MirrorStatus) error {
	job := act.Job.DeepCopy()
	job.Object["status"] = act.Status
	if len(act.Status) == 0 {
		// Without the field, as when the job was new: a schema may want an object to have fields.
		delete(job.Object, "status")
	}
	patch := client.MergeFromWithOptions(act.Job, client.MergeFromWithOptimisticLock{})
	var err error
	if act.Kind.PlainStatus {
		err = a.Manager.Patch(ctx, job, patch)
	} else {
		err = a.Manager.Status().Patch(ctx, job, patch)
	}
	if err != nil {
		return a.notMirrored(ctx, ref, act, fmt.Errorf("mirror the status of %s: %w", ref, err))
	}
	job.SetManagedFields(nil)
	kept, _, _ := unstructured.NestedMap(job.Object, "status")
	a.Memory.Mirrored(ref, job.GetUID(), act.Status, kept)
	a.Memory.Wrote(observe.Manager, ref, job, a.Clock.Now())
	return nil
}

// ErrStatusRefused says that the manager's API server does not take a status; when to try again is for the next plan to say.
var ErrStatusRefused = errors.New("refused")

// notMirrored tells a status that is refused from a fault that passes, or an object that went away.
func (a *Applier) notMirrored(ctx context.Context, ref kinds.Ref, act plan.MirrorStatus, err error) error {
	final := Refused(err)
	if apierrors.IsNotFound(err) {
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(act.Job.GroupVersionKind())
		if look := a.Manager.Get(ctx, client.ObjectKeyFromObject(act.Job), is); look != nil || is.GetUID() != act.Job.GetUID() {
			return err
		}
	}
	if !final && !apierrors.IsInternalError(err) {
		return err
	}
	if a.Memory.StatusRefused(ref, act.Job.GetUID(), act.Status, final, reason.Brief(err.Error()), a.Clock.Now()) {
		a.Recorder.Eventf(act.Job, nil, corev1.EventTypeWarning, "StatusRefused", "Mirror", "%s", reason.Note(err.Error()))
	}
	// What it was is not wrapped: a status that is not found is no job that is gone.
	return fmt.Errorf("%w: %v", ErrStatusRefused, err) //nolint:errorlint // see above
}
