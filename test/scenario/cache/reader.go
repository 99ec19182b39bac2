package cache

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Reader reads a cache as Ferry does.
type Reader struct {
	Cache *Cache
	// Index gives a Workload its values under observe.JobIndex.
	Index func(client.Object) []string
	// Refuse may fail a read of a kind.
	Refuse func(kind string) error
}

// Get implements client.Reader.
func (r Reader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	probe := obj.DeepCopyObject().(client.Object)
	probe.SetNamespace(key.Namespace)
	probe.SetName(key.Name)
	at := cluster.KeyOf(probe)
	if err := r.Refuse(at.Kind); err != nil {
		return err
	}
	name := at.Kind
	if _, bare := obj.(*metav1.PartialObjectMetadata); bare {
		name = NamesOf(name)
	}
	for i, s := range r.Cache.streams {
		if s.Name != name {
			continue
		}
		if found := r.Cache.shown[i][at]; found != nil {
			cluster.CopyInto(found, obj)
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: at.Kind}, at.Name)
	}
	return fmt.Errorf("the cache has no stream %q", name)
}

// List implements client.Reader for Workloads by their index.
func (r Reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	out, ok := list.(*kueue.WorkloadList)
	if !ok {
		return fmt.Errorf("a list of %T is not modelled", list)
	}
	if err := r.Refuse("Workload"); err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	want := indexed(o)
	for _, obj := range r.Cache.Shown("Workload") {
		wl := obj.(*kueue.Workload)
		if want == "" || wl.Namespace == o.Namespace && slices.Contains(r.Index(wl), want) {
			out.Items = append(out.Items, *wl)
		}
	}
	return nil
}

// indexed is the job that a list asks for; empty when it asks for all.
func indexed(o *client.ListOptions) string {
	if o.FieldSelector == nil {
		return ""
	}
	for _, requirement := range o.FieldSelector.Requirements() {
		if requirement.Field == observe.JobIndex {
			return requirement.Value
		}
	}
	return ""
}
