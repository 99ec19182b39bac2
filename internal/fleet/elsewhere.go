package fleet

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// samples is how many of the objects that a cluster holds are looked for in what may be another.
const samples = 3

// Elsewhere tells whether a configuration leads to another cluster than the live connection of a worker: to one that
// answers, and has none of the Workloads that Ferry sees through that connection. It is false where there is nothing of
// ours to leave behind, and where nobody knows, since whoever is at cfg refuses or does not answer. It takes the
// probe's timeout at most.
func (f *Fleet) Elsewhere(ctx context.Context, name string, cfg *rest.Config) bool {
	w, found := f.lookup(name)
	if !found {
		return false
	}
	w.mu.Lock()
	now, config := w.link, w.config
	w.mu.Unlock()
	if now == nil || samePlace(config, cfg) {
		return false
	}
	held := &kueue.WorkloadList{}
	if err := now.Reader().List(ctx, held, client.UnsafeDisableDeepCopy); err != nil || len(held.Items) == 0 {
		return false
	}
	other, err := prepare(target{worker: name, config: cfg, limiter: w.limiter, options: w.options})
	if err != nil {
		return false
	}
	defer other.close()
	ctx, stop := context.WithTimeout(ctx, f.options.ProbeTimeout)
	defer stop()
	for i := range min(len(held.Items), samples) {
		if has, err := other.has(ctx, &held.Items[i]); has || err != nil {
			return false
		}
	}
	return true
}

// has tells whether the very Workload is there.
func (c *conn) has(ctx context.Context, wl *kueue.Workload) (bool, error) {
	raw, err := c.asks.Get().AbsPath("/apis/" + kueue.SchemeGroupVersion.String() + "/namespaces/" + wl.Namespace + "/workloads/" + wl.Name).
		MaxRetries(0).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	found := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, found); err != nil {
		return false, err
	}
	return found.UID == wl.UID, nil
}
