package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/test/scenario/cluster"
)

// Reader reads a cache as Ferry does.
type Reader struct {
	Cache *Cache
	// Index gives a Workload its values under observe.JobIndex; nil where nobody asks for them.
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
	found := r.Cache.Find(at.Kind, at)
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: at.Kind}, at.Name)
	}
	cluster.CopyInto(found, obj)
	return nil
}

// List implements client.Reader for Workloads and pods by their index.
func (r Reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	switch out := list.(type) {
	case *kueue.WorkloadList:
		return r.each("Workload", o, func(obj client.Object) { out.Items = append(out.Items, *obj.(*kueue.Workload)) })
	case *unstructured.UnstructuredList:
		return r.each(strings.TrimSuffix(out.GetKind(), "List"), o, func(obj client.Object) {
			out.Items = append(out.Items, *obj.(*unstructured.Unstructured))
		})
	default:
		return fmt.Errorf("a list of %T is not modelled", list)
	}
}

func (r Reader) each(kind string, o *client.ListOptions, add func(client.Object)) error {
	if err := r.Refuse(kind); err != nil {
		return err
	}
	want := indexed(o)
	for _, obj := range r.Cache.Shown(kind) {
		inNamespace := o.Namespace == "" || obj.GetNamespace() == o.Namespace
		if inNamespace && (want == "" || slices.Contains(r.Index(obj), want)) {
			add(obj)
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
