package kinds

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// labelMark is the Mark where managedBy is a label, whose values have no slashes.
const labelMark = "multikueue"

// Fields is what the operator says about a custom kind.
type Fields struct {
	// ManagedBy may be empty only for a kind that nothing on the manager would run.
	ManagedBy Path
	Drop      []Path
	Flow      []Path
	// Suspend is set to Suspended on each copy, or to true when Suspended is empty.
	Suspend   Path
	Suspended string
	// PlainStatus: the status is no subresource.
	PlainStatus bool
	// Plural is the kind's resource name; empty where it is regular.
	Plural string
}

// Custom returns the row of a kind that is not built in. Its status comes back
// as it is. Whether a job is over its status does not tell: the Workload on the
// worker does, which whoever runs the job there finishes.
func Custom(gvk schema.GroupVersionKind, f Fields) Kind {
	k := Kind{
		// Kueue names a kind of another's like this in its own lists.
		Framework: gvk.Kind + "." + gvk.Version + "." + gvk.Group,
		GVK:       gvk,
		ManagedBy: f.ManagedBy, Suspend: f.Suspend, Suspended: f.Suspended,
		Drop: f.Drop, Flow: f.Flow, PlainStatus: f.PlainStatus, Plural: f.Plural,
		// Without a copy nothing of the job runs anywhere, and it has no status, as when it was new.
		Stopped: map[string]any{},
	}
	if k.Plural == "" {
		regular, _ := meta.UnsafeGuessKindToResource(gvk)
		k.Plural = regular.Resource
	}
	if f.ManagedBy.Within(Path{"metadata", "labels"}) {
		k.Mark = labelMark
	}
	return k
}

// mark is what the field ManagedBy has to hold.
func (k *Kind) mark() string {
	if k.Mark != "" {
		return k.Mark
	}
	return kueue.MultiKueueControllerName
}

// ManagedByValue is what Ferry's webhook writes into the field ManagedBy.
func (k *Kind) ManagedByValue() string { return k.mark() }

func (k *Kind) suspended() any {
	if k.Suspended != "" {
		return k.Suspended
	}
	return true
}
