package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// lookUp remembers what the API server says about a copy that the cache does not show.
func (a *Applier) lookUp(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.LookUp) error {
	wl := &kueue.Workload{}
	err := to.Get(ctx, act.Workload, wl)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s on worker %s: %w", act, worker, err)
	}
	a.Memory.Sought(worker, ref, wl.Labels[kueue.MultiKueueOriginLabel], a.Clock.Now())
	return nil
}
