// Package apply carries out one Action of a plan. It decides nothing.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

// Applier writes to the manager and to workers, and remembers what it wrote.
type Applier struct {
	Manager  client.Client
	Recorder events.EventRecorder
	Memory   *observe.Memory
	Clock    clock.PassiveClock
	Metrics  *Metrics
}

// OnManager carries out one action on the manager. A conflict means that the
// decision was made on an old version: decide anew.
func (a *Applier) OnManager(ctx context.Context, ref kinds.Ref, action plan.Action) error {
	switch act := action.(type) {
	case plan.Nominate:
		return a.admission(ctx, ref, act.Workload, func(wl *kueue.Workload) {
			wl.Status.NominatedClusterNames = act.Workers
			adds := slices.ContainsFunc(act.Workers, func(name string) bool {
				return !slices.Contains(act.Workload.Status.NominatedClusterNames, name)
			})
			a.setCheck(wl, act.Check, kueue.CheckStatePending, act.Message, adds)
		})
	case plan.Claim:
		return a.admission(ctx, ref, act.Workload, func(wl *kueue.Workload) {
			wl.Status.ClusterName = &act.Worker
			wl.Status.NominatedClusterNames = nil
			a.setCheck(wl, act.Check, kueue.CheckStatePending, act.Message, false)
		})
	case plan.SetCheck:
		return a.check(ctx, ref, act)
	case plan.Finish:
		return a.admission(ctx, ref, act.Workload, func(wl *kueue.Workload) {
			setCondition(wl, metav1.Condition{
				Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: act.Reason, Message: act.Message,
				LastTransitionTime: metav1.NewTime(a.Clock.Now()), ObservedGeneration: wl.Generation,
			})
		})
	case plan.MirrorStatus:
		return a.mirror(ctx, ref, act)
	case plan.Warn:
		a.warn(ref, act)
		return nil
	default:
		return fmt.Errorf("%s is not an action for the manager", action)
	}
}

func (a *Applier) check(ctx context.Context, ref kinds.Ref, act plan.SetCheck) error {
	err := a.admission(ctx, ref, act.Workload, func(wl *kueue.Workload) {
		a.setCheck(wl, act.Check, act.State, act.Message, false)
		if act.State == kueue.CheckStateReady {
			endTopologyDelay(wl)
		}
	})
	if err != nil {
		return err
	}
	if act.Rest != nil {
		a.Memory.Rest(act.Rest.Worker, ref, *act.Rest, a.Clock.Now())
	}
	if act.Event {
		kind := corev1.EventTypeNormal
		if act.Warning {
			kind = corev1.EventTypeWarning
		}
		a.Recorder.Eventf(act.Workload, nil, kind, reason.Event, reason.Event, "%s", reason.Note(act.Message))
	}
	if act.Tell != nil {
		a.Recorder.Eventf(act.Tell, act.Workload, corev1.EventTypeWarning, reason.Warning, reason.Event, "%s", reason.Note(act.Message))
	}
	if act.State == kueue.CheckStateReady && act.Workload.Status.ClusterName != nil && !isReady(act) {
		a.Memory.Placed(*act.Workload.Status.ClusterName, ref)
		a.Metrics.admitted(act.Workload, *act.Workload.Status.ClusterName)
	}
	return nil
}

// endTopologyDelay lets Kueue admit a Workload whose nodes are a worker's affair: with the check Ready, they are found.
func endTopologyDelay(wl *kueue.Workload) {
	if !plan.DelaysTopology(wl) {
		return
	}
	for i := range wl.Status.Admission.PodSetAssignments {
		if a := &wl.Status.Admission.PodSetAssignments[i]; a.DelayedTopologyRequest != nil {
			a.DelayedTopologyRequest = ptr.To(kueue.DelayedTopologyRequestStateReady)
		}
	}
}

// isReady tells whether the check was Ready before, so that only its message changes.
func isReady(act plan.SetCheck) bool {
	return slices.ContainsFunc(act.Workload.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool {
		return c.Name == act.Check && c.State == kueue.CheckStateReady
	})
}

// warn gives users an event on each object of the job.
func (a *Applier) warn(ref kinds.Ref, act plan.Warn) {
	about := func(obj runtime.Object) {
		a.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, reason.Event, reason.Event, "%s", reason.Note(act.Message))
	}
	for _, job := range act.Jobs {
		about(job)
	}
	for _, wl := range act.Workloads {
		about(wl)
	}
	a.Memory.Told(ref, act.Message)
}

// setCheck writes our check into the status. The transition time moves with the
// state, and with a nomination, whose age the Incremental dispatcher goes by.
func (a *Applier) setCheck(wl *kueue.Workload, name kueue.AdmissionCheckReference, state kueue.CheckState, message string, moves bool) {
	for i := range wl.Status.AdmissionChecks {
		c := &wl.Status.AdmissionChecks[i]
		if c.Name != name {
			continue
		}
		if c.State != state || moves {
			c.LastTransitionTime = metav1.NewTime(a.Clock.Now())
		}
		c.State, c.Message = state, message
	}
}

// admission applies a change to the Workload's admission status in Kueue's own
// name, so that Kueue's eviction takes it back with the rest, and under the
// lock of the version that the decision was made on.
func (a *Applier) admission(ctx context.Context, ref kinds.Ref, base *kueue.Workload, change func(*kueue.Workload)) error {
	wl := base.DeepCopy()
	change(wl)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(admissionStatus(wl))
	if err != nil {
		return fmt.Errorf("encode the status of Workload %s/%s: %w", wl.Namespace, wl.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "spec")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if len(base.Status.NominatedClusterNames) > 0 && len(wl.Status.NominatedClusterNames) == 0 {
		// Leaving the field out would keep the names that another controller set, the External dispatcher.
		_ = unstructured.SetNestedSlice(u.Object, []any{}, "status", "nominatedClusterNames")
	}
	if err := a.carryNewer(ctx, base, u); err != nil {
		return err
	}
	err = a.Manager.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(kueueAdmission), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("apply the status of Workload %s/%s: %w", wl.Namespace, wl.Name, err)
	}
	now := &kueue.Workload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, now); err != nil {
		return fmt.Errorf("decode the status of Workload %s/%s: %w", wl.Namespace, wl.Name, err)
	}
	Strip(now)
	a.Memory.Wrote(observe.Manager, ref, now, a.Clock.Now())
	return nil
}

// carryNewer adds to an apply what kueueAdmission owns and our types do not have, from the live Workload: what an apply
// leaves out is removed.
func (a *Applier) carryNewer(ctx context.Context, base *kueue.Workload, u *unstructured.Unstructured) error {
	if len(base.ManagedFields) == 0 {
		return nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kueue.SchemeGroupVersion.WithKind("Workload"))
	if err := a.Manager.Get(ctx, client.ObjectKeyFromObject(base), live); err != nil {
		return fmt.Errorf("read Workload %s/%s: %w", base.Namespace, base.Name, err)
	}
	if live.GetResourceVersion() != base.ResourceVersion {
		return apierrors.NewConflict(kueue.Resource("workloads"), base.Name, errors.New("it has changed since it was decided on"))
	}
	from, _, _ := unstructured.NestedMap(live.Object, "status")
	to, _, _ := unstructured.NestedMap(u.Object, "status")
	for _, entry := range live.GetManagedFields() {
		carry(ownedStatus(entry), statusType, from, to)
	}
	return unstructured.SetNestedMap(u.Object, to, "status")
}
