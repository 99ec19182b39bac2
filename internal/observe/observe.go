// Package observe reads caches and builds the Snapshot that a decision is made on. It writes nothing.
package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

// JobIndex is the manager's cache index of Workloads and pods by the job that they belong to; see OwnerIndex.
const JobIndex = "ferry.dev/job"

// OwnerIndex gives a manager's Workload or pod its index value.
func OwnerIndex(obj client.Object) []string {
	switch o := obj.(type) {
	case *kueue.Workload:
		ref, _ := kinds.Owner(o)
		return []string{ref.String()}
	case *unstructured.Unstructured:
		return []string{kinds.RefOf(o).String()}
	default:
		return nil
	}
}

// Observer reads the caches of the manager and of all workers.
type Observer struct {
	Manager client.Reader
	Setup   Setup
	Fleet   fleet.View
	Kinds   *kinds.Table
	Memory  *Memory
	Clock   clock.PassiveClock
	Policy  plan.Policy
	// Wake is told the jobs that are to be decided about because of what was seen of another; may be nil.
	Wake func(refs ...kinds.Ref)
	// Placements gives the placement that a MultiKueueConfig names; nil: all have the policy's.
	Placements func(dispatcher string) placement.Placement
	// WantQueues is told that a job's placement goes by what the workers' queues have; may be nil.
	WantQueues func()
}

// Snapshot gathers what is known about one job now.
func (o *Observer) Snapshot(ctx context.Context, ref kinds.Ref) (plan.Snapshot, error) {
	s := plan.Snapshot{Now: o.Clock.Now(), Ref: ref, Kind: o.Kinds.ByName(ref.Kind), Policy: o.Policy}
	if err := o.readManager(ctx, &s); err != nil {
		return s, err
	}
	names, err := o.readCheck(ctx, &s)
	if err != nil {
		return s, err
	}
	if err := o.readFamily(ctx, &s); err != nil {
		return s, err
	}
	o.readWish(&s)
	s.Told = o.Memory.toldOf(ref)
	s.Past = o.Memory.pastOf(ref, s.Workloads)
	s.SpecHashes = o.Memory.specHashesOf(ref, s.Workloads)
	s.Host, s.Pruned = o.Memory.host(ref, claimOf(s.Workloads)), o.Memory.prunedOf(ref)
	s.Refused = o.Memory.refusalsOf(ref)
	s.ClaimedSince = o.Memory.claimedSince(ref, claimOf(s.Workloads), s.Now)
	look := lookFor(&s)
	s.Workers = make([]plan.Worker, 0, len(names)+1)
	for _, name := range names {
		w, err := o.worker(look, name, true)
		if err != nil {
			return s, err
		}
		s.Workers = append(s.Workers, w)
	}
	if err := o.readOthers(look, names); err != nil {
		return s, err
	}
	if isOver(&s) {
		o.Memory.over(ref)
	}
	return s, nil
}

// Submitted tells whether the manager may have such a job, from the cache.
func (o *Observer) Submitted(ctx context.Context, ref kinds.Ref) bool {
	kind := o.Kinds.ByName(ref.Kind)
	if kind == nil {
		return false
	}
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(kind.GVK)
	return !apierrors.IsNotFound(o.Manager.Get(ctx, ref.Key(), job))
}

// isOver tells whether all Workloads of the job are finished, on the manager or already on the worker that ran it.
func isOver(s *plan.Snapshot) bool {
	return allFinished(s.Workloads) || slices.ContainsFunc(s.Workers, func(w plan.Worker) bool { return w.Name == s.Host && allFinished(w.Workloads) })
}

func allFinished(wls []*kueue.Workload) bool {
	return len(wls) > 0 && !slices.ContainsFunc(wls, func(wl *kueue.Workload) bool { return !Finished(wl) })
}

func (o *Observer) readManager(ctx context.Context, s *plan.Snapshot) error {
	if s.Kind != nil {
		if err := o.readJobs(ctx, s); err != nil {
			return err
		}
	}
	wls, err := o.workloads(ctx, s.Ref)
	if err != nil {
		return err
	}
	// Those of an earlier job of the same name are left out too.
	s.Workloads = wls
	if s.Kind != nil {
		s.Workloads = s.Kind.Made(wls, s.Jobs)
	}
	if s.Kind == nil && len(s.Workloads) > 0 {
		if _, gvk := kinds.Owner(s.Workloads[0]); gvk != kueue.SchemeGroupVersion.WithKind("Workload") {
			s.OwnerKind = gvk.String()
		}
	}
	return nil
}

// readJobs reads the job and its pods on the manager, or why they cannot be read now.
func (o *Observer) readJobs(ctx context.Context, s *plan.Snapshot) error {
	found, err := o.jobs(ctx, s)
	if err == nil && s.Kind.Pods {
		s.Pods, err = o.list(ctx, s, s.Kind.PodKind().GVK)
	}
	var notServed *jobs.NotServedError
	if errors.As(err, &notServed) {
		s.Unseen = notServed.Error()
		return nil
	}
	// A Workload may name an object as its owner that is a part of another job, such as a pod of a group.
	s.Jobs = slices.DeleteFunc(found, func(job *unstructured.Unstructured) bool { return kinds.RefOf(job) != s.Ref })
	return err
}

// readCheck finds our admission check and the workers that its config names.
func (o *Observer) readCheck(ctx context.Context, s *plan.Snapshot) ([]string, error) {
	for _, wl := range s.Workloads {
		for _, state := range wl.Status.AdmissionChecks {
			check := &kueue.AdmissionCheck{}
			err := o.Manager.Get(ctx, client.ObjectKey{Name: string(state.Name)}, check, client.UnsafeDisableDeepCopy)
			if apierrors.IsNotFound(err) {
				s.CheckUnknown = true
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read AdmissionCheck %q: %w", state.Name, err)
			}
			if check.Spec.ControllerName == kueue.MultiKueueControllerName {
				s.Check = state.Name
				return o.clusters(ctx, s, check)
			}
		}
	}
	return nil, nil
}

// clusters are the workers of a check's config, in its order; none when there is no such config.
func (o *Observer) clusters(ctx context.Context, s *plan.Snapshot, check *kueue.AdmissionCheck) ([]string, error) {
	if check.Spec.Parameters == nil {
		return nil, nil
	}
	config := &kueue.MultiKueueConfig{}
	err := o.Manager.Get(ctx, client.ObjectKey{Name: check.Spec.Parameters.Name}, config, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read MultiKueueConfig %q: %w", check.Spec.Parameters.Name, err)
	}
	s.PreemptionTimeout = preemptionTimeout(config, o.Policy.PreemptionTimeout)
	o.choosePlacement(s, config)
	return config.Spec.Clusters, nil
}

// choosePlacement takes the placement that the config names, if it does.
func (o *Observer) choosePlacement(s *plan.Snapshot, config *kueue.MultiKueueConfig) {
	if name := config.Annotations[placement.DispatcherAnnotation]; name != "" && o.Placements != nil {
		s.Policy.Dispatcher, s.Policy.Placement = name, o.Placements(name)
	}
	if _, byFit := s.Policy.Placement.(placement.Best); byFit && o.WantQueues != nil {
		o.WantQueues()
	}
}

// preemptionTimeout is that of a MultiKueueConfig, if it has one that can be read; the check's condition says so if not.
func preemptionTimeout(config *kueue.MultiKueueConfig, otherwise time.Duration) time.Duration {
	own, err := kinds.PreemptionTimeout(config)
	if otherwise <= 0 || own <= 0 || err != nil {
		return otherwise
	}
	return own
}

// readOthers adds the workers that the config does not name and that matter
// all the same: the one that holds the claim, and those that hold something of ours.
func (o *Observer) readOthers(s *look, names []string) error {
	others := o.Fleet.Workers()
	for _, name := range []string{claimOf(s.Workloads), s.Host} {
		if name != "" && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	named := make(map[string]bool, len(names))
	for _, name := range names {
		named[name] = true
	}
	for _, name := range others {
		if named[name] {
			continue
		}
		w, err := o.worker(s, name, false)
		if err != nil {
			return err
		}
		// Without a config nobody says that the worker is to be given up: it may be about to be made anew.
		w.Leaving = w.Leaving || len(names) > 0
		if matters(s.Snapshot, &w) {
			s.Workers = append(s.Workers, w)
		}
	}
	return nil
}

func matters(s *plan.Snapshot, w *plan.Worker) bool {
	return len(w.Jobs) > 0 || len(w.Workloads) > 0 || w.Name == claimOf(s.Workloads) || w.Name == s.Host
}

// claimOf is the worker that Workloads are assigned to. What a finished one says
// counts last: the job may run elsewhere by another slice since.
func claimOf(wls []*kueue.Workload) string {
	claim := ""
	for _, wl := range wls {
		switch {
		case wl.Status.ClusterName == nil:
		case !Finished(wl):
			return *wl.Status.ClusterName
		case claim == "":
			claim = *wl.Status.ClusterName
		}
	}
	return claim
}

// jobs are the objects on the manager that make up the job: one, or the members of a group.
func (o *Observer) jobs(ctx context.Context, s *plan.Snapshot) ([]*unstructured.Unstructured, error) {
	if s.Kind.Group {
		return o.list(ctx, s, s.Kind.GVK)
	}
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(s.Kind.GVK)
	var cached []*unstructured.Unstructured
	switch err := o.Manager.Get(ctx, s.Ref.Key(), job, client.UnsafeDisableDeepCopy); {
	case err == nil:
		cached = append(cached, job)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read %s on the manager: %w", s.Ref, err)
	}
	return recall(o.Memory, Manager, s.Ref, s.Kind.GVK.GroupKind(), cached, s.Now), nil
}

// list reads all objects of one kind on the manager that belong to the job.
func (o *Observer) list(ctx context.Context, s *plan.Snapshot, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := o.Manager.List(ctx, list, client.InNamespace(s.Ref.Namespace), client.MatchingFields{JobIndex: s.Ref.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the %ss of %s on the manager: %w", gvk.Kind, s.Ref, err)
	}
	objs := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		objs = append(objs, &list.Items[i])
	}
	return recall(o.Memory, Manager, s.Ref, gvk.GroupKind(), objs, s.Now), nil
}

// workloads reads those of the job on the manager.
func (o *Observer) workloads(ctx context.Context, ref kinds.Ref) ([]*kueue.Workload, error) {
	list := &kueue.WorkloadList{}
	if err := o.Manager.List(ctx, list, client.InNamespace(ref.Namespace), client.MatchingFields{JobIndex: ref.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Workloads of %s on the manager: %w", ref, err)
	}
	wls := make([]*kueue.Workload, 0, len(list.Items))
	for i := range list.Items {
		wls = append(wls, &list.Items[i])
	}
	return recall(o.Memory, Manager, ref, workloadKind.GroupKind(), wls, o.Clock.Now()), nil
}

// lostSince is never zero for an unreachable worker, so that every wait ends.
func (o *Observer) lostSince(s *plan.Snapshot, name string, status fleet.Status, inConfig bool) time.Time {
	switch {
	case !status.LostSince.IsZero():
		return status.LostSince
	case status.Reach == fleet.Unknown || !inConfig:
		return o.missingSince(s, name)
	default:
		return s.Now
	}
}

// missingSince is when the worker was first found missing; for a job that is gone it does not matter.
func (o *Observer) missingSince(s *plan.Snapshot, name string) time.Time {
	if len(s.Jobs) == 0 && len(s.Workloads) == 0 {
		return s.Now
	}
	return o.Memory.missingSince(s.Ref, name, s.Now)
}

// Finished tells whether Kueue has ended the Workload.
func Finished(wl *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
}
