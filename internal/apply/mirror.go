package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
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
		return fmt.Errorf("mirror the status of %s: %w", ref, err)
	}
	job.SetManagedFields(nil)
	kept, _, _ := unstructured.NestedMap(job.Object, "status")
	a.Memory.Mirrored(ref, job.GetUID(), act.Status, kept)
	a.Memory.Wrote(observe.Manager, ref, job, a.Clock.Now())
	return nil
}
