package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// adopt writes nothing but the marks, and only on the version that was decided on.
func (a *Applier) adopt(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.Adopt) error {
	seen, want := act.Copy.(client.Object), act.Want.DeepCopyObject().(client.Object)
	if err := to.Patch(ctx, want, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("%s on worker %s: %w", act, worker, err))
	}
	want.SetManagedFields(nil)
	a.Memory.Wrote(worker, ref, want, a.Clock.Now())
	return nil
}

// markPods reads the pods of the set from the API server: no cache has them. They come
// into the cache by their new label.
func (a *Applier) markPods(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.MarkPods) error {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := to.List(ctx, pods, client.InNamespace(ref.Namespace), client.MatchingLabelsSelector{Selector: kinds.PodSelector(act.Set)}); err != nil {
		return fmt.Errorf("%s on worker %s: %w", act, worker, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if kinds.Ours(pod) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		marked := pod.DeepCopy()
		kinds.MarkPod(marked, act.Set)
		err := to.Patch(ctx, marked, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("%s on worker %s: %w", act, worker, err)
		}
	}
	return nil
}

// lookUp remembers what the API server says about a copy that the cache does not show. What is found there counts as seen,
// as what was just written does: the watch may be silent.
func (a *Applier) lookUp(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.LookUp) error {
	var found client.Object = &kueue.Workload{}
	isWorkload := act.GVK.GroupKind() == kueue.SchemeGroupVersion.WithKind("Workload").GroupKind()
	if !isWorkload {
		job := &unstructured.Unstructured{}
		job.SetGroupVersionKind(act.GVK)
		found = job
	}
	err := to.Get(ctx, act.Key, found)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s on worker %s: %w", act, worker, err)
	}
	now := a.Clock.Now()
	of, ours := kinds.CopyOf(found)
	switch {
	case err == nil && ours && of == ref && found.GetLabels()[kueue.MultiKueueOriginLabel] == act.Origin:
		found.SetManagedFields(nil)
		a.Memory.Wrote(worker, ref, found, now)
	case isWorkload:
		a.Memory.Sought(worker, ref, found.GetLabels()[kueue.MultiKueueOriginLabel], now)
	default:
		a.Memory.JobGone(worker, ref, now)
	}
	return nil
}
