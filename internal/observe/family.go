package observe

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// readFamily notes where the job is, for its relatives, and finds out where these are as long as that matters: until
// the job has a worker.
func (o *Observer) readFamily(ctx context.Context, s *plan.Snapshot) error {
	if s.Unseen != "" {
		return nil
	}
	name := ""
	if len(s.Jobs) == 1 {
		name = familyOf(s.Jobs[0])
	}
	if name == "" {
		o.wake(o.Memory.leaves(s.Ref))
		return nil
	}
	if !o.Memory.knowsFamily(name) {
		if err := o.meet(ctx, s, name); err != nil {
			return err
		}
	}
	claim := claimOf(s.Workloads)
	o.wake(o.Memory.joins(name, s.Ref, claim))
	if s.Check == "" || claim != "" {
		return nil
	}
	s.Family.Home = o.Memory.homeOf(name)
	if s.Family.Home != "" || !slices.ContainsFunc(s.Workloads, isOnOffer) {
		return nil
	}
	if first := o.Memory.firstOf(name, s.Ref, s.Now); first.ref != s.Ref {
		s.Family.Earlier, s.Family.Until = first.ref.Name, first.at.Add(choosesFor)
	}
	return nil
}

// familyOf is empty for a job without a family, and for one that is going.
func familyOf(job *unstructured.Unstructured) string {
	family, _, _ := unstructured.NestedString(job.Object, "metadata", "annotations", kinds.FamilyAnnotation)
	if family == "" || job.GetDeletionTimestamp() != nil {
		return ""
	}
	return job.GetNamespace() + "/" + family
}

func (o *Observer) wake(refs []kinds.Ref) {
	if len(refs) > 0 && o.Wake != nil {
		o.Wake(refs...)
	}
}

// meet notes where all relatives of a job are, at the first look at one of them in this process.
func (o *Observer) meet(ctx context.Context, s *plan.Snapshot, name string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.Kind.GVK.GroupVersion().WithKind(s.Kind.GVK.Kind + "List"))
	if err := o.Manager.List(ctx, list, client.InNamespace(s.Ref.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the relatives of %s: %w", s.Ref, err)
	}
	for i := range list.Items {
		if familyOf(&list.Items[i]) != name {
			continue
		}
		ref := kinds.RefOf(&list.Items[i])
		wls, err := o.workloads(ctx, ref)
		if err != nil {
			return err
		}
		o.wake(o.Memory.joins(name, ref, claimOf(wls)))
	}
	return nil
}

// isOnOffer: the Workload has quota on the manager, and workers are or will be asked.
func isOnOffer(wl *kueue.Workload) bool { return plan.Reservation(wl) != "" && !Finished(wl) }
