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

// readFamily finds out where the job's relatives are, as long as that matters:
// until the job has a worker.
func (o *Observer) readFamily(ctx context.Context, s *plan.Snapshot) error {
	if s.Check == "" || len(s.Jobs) != 1 || claimOf(s.Workloads) != "" {
		return nil
	}
	family := s.Jobs[0].GetAnnotations()[kinds.FamilyAnnotation]
	if family == "" {
		return nil
	}
	home, err := o.homeOf(ctx, s, family)
	if err != nil {
		return err
	}
	s.Family.Home = home
	if s.Family.Home != "" || !slices.ContainsFunc(s.Workloads, isOnOffer) {
		return nil
	}
	if first := o.Memory.firstOf(s.Ref.Namespace+"/"+family, s.Ref, s.Now); first != s.Ref {
		s.Family.Earlier = first.Name
	}
	return nil
}

// homeOf is the worker that most of the family are assigned to; empty if none is.
func (o *Observer) homeOf(ctx context.Context, s *plan.Snapshot, family string) (string, error) {
	relatives, err := o.relatives(ctx, s, family)
	if err != nil {
		return "", err
	}
	homes := map[string]int{}
	for _, pod := range relatives {
		wls, err := o.workloads(ctx, o.Manager, Manager, kinds.RefOf(pod))
		if err != nil {
			return "", err
		}
		if claim := claimOf(wls); claim != "" {
			homes[claim]++
		}
	}
	return most(homes), nil
}

// relatives are the other jobs of the job's family.
func (o *Observer) relatives(ctx context.Context, s *plan.Snapshot, family string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.Kind.GVK.GroupVersion().WithKind(s.Kind.GVK.Kind + "List"))
	if err := o.Manager.List(ctx, list, client.InNamespace(s.Ref.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the relatives of %s: %w", s.Ref, err)
	}
	var found []*unstructured.Unstructured
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.GetAnnotations()[kinds.FamilyAnnotation] == family && pod.GetUID() != s.Jobs[0].GetUID() && pod.GetDeletionTimestamp() == nil {
			found = append(found, pod)
		}
	}
	return found, nil
}

// isOnOffer: the Workload has quota on the manager, and workers are or will be asked.
func isOnOffer(wl *kueue.Workload) bool { return plan.Reservation(wl) != "" && !Finished(wl) }

func most(counts map[string]int) string {
	best := ""
	for name, n := range counts {
		if best == "" || n > counts[best] || (n == counts[best] && name < best) {
			best = name
		}
	}
	return best
}
