package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// worker is one worker as the job sees it now.
func (o *Observer) worker(ctx context.Context, s *plan.Snapshot, name string, inConfig bool) (plan.Worker, error) {
	w := plan.Worker{Name: name, InConfig: inConfig}
	status := o.Fleet.Status(name)
	conn, reachable := o.Fleet.Conn(name)
	w.LostSince = o.lostSince(s, name, status, inConfig)
	if !reachable {
		return w, nil
	}
	w.Reachable = true
	err := o.readWorker(ctx, conn, s, &w)
	switch {
	case w.Blind:
		w.LostSince = o.missingSince(s, name)
	case inConfig:
		o.Memory.present(s.Ref, name)
	}
	if err != nil && o.lostMeanwhile(name, conn) {
		// The connection went away between two reads: the caches are void.
		return plan.Worker{Name: name, InConfig: inConfig, LostSince: s.Now}, nil
	}
	return w, err
}

func (o *Observer) lostMeanwhile(name string, conn fleet.Conn) bool {
	now, reachable := o.Fleet.Conn(name)
	return !reachable || now != conn
}

func (o *Observer) readWorker(ctx context.Context, conn fleet.Conn, s *plan.Snapshot, w *plan.Worker) error {
	wls, err := o.workloads(ctx, conn.Reader(), w.Name, s.Ref)
	if err != nil {
		return err
	}
	w.Workloads = wls
	if s.Kind == nil {
		return nil
	}
	w.Serves, w.Why = conn.Serves(s.Kind.GVK)
	w.Blind = !w.Serves
	if w.Serves {
		if err := o.readJob(ctx, conn, s, w); err != nil {
			return err
		}
		if err := readQueue(ctx, conn, s, w); err != nil {
			return err
		}
	}
	o.setTwinsApart(w)
	if b, blocked := o.Memory.blocked(w.Name, s.Ref, s.Now); blocked {
		w.Serves, w.Why, w.AskAgain = false, b.why, b.until
	}
	return nil
}

// readJob finds our copy of the job, or that somebody else's object has its name.
func (o *Observer) readJob(ctx context.Context, conn fleet.Conn, s *plan.Snapshot, w *plan.Worker) error {
	jobs, err := o.jobs(ctx, conn.Reader(), w.Name, s)
	var notServed *fleet.NotServedError
	if errors.As(err, &notServed) {
		w.Serves, w.Blind, w.Why = false, true, notServed.Error()
		return nil
	}
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if kinds.IsCopyOf(job, s.Ref) {
			w.Jobs = append(w.Jobs, job)
		} else {
			w.Foreign = true
		}
	}
	if err := o.readPods(ctx, conn, s, w); err != nil {
		return err
	}
	if len(jobs) > 0 || !s.Kind.Named() {
		return nil
	}
	return o.findHolder(ctx, conn, s, w)
}

// readPods finds the pods of our copy. They matter only for what the manager
// shows, so a worker that does not let them be read can have the job all the same.
func (o *Observer) readPods(ctx context.Context, conn fleet.Conn, s *plan.Snapshot, w *plan.Worker) error {
	pods, err := o.pods(ctx, conn.Reader(), w.Name, s)
	var notServed *fleet.NotServedError
	if err != nil && !errors.As(err, &notServed) {
		return err
	}
	w.Pods = pods
	return nil
}

// findHolder finds out whether somebody else's object has the job's name.
func (o *Observer) findHolder(ctx context.Context, conn fleet.Conn, s *plan.Snapshot, w *plan.Worker) error {
	holder := &metav1.PartialObjectMetadata{}
	holder.SetGroupVersionKind(s.Kind.GVK)
	err := conn.Names().Get(ctx, s.Ref.Key(), holder)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("look up the name %s on worker %s: %w", s.Ref, w.Name, err)
	}
	// One with our label that the filtered cache does not show yet is ours, on its way.
	w.Foreign = err == nil && holder.Labels[kueue.MultiKueueOriginLabel] != o.Policy.Origin
	return nil
}

// readQueue finds out whether the worker has the queue that the job names.
func readQueue(ctx context.Context, conn fleet.Conn, s *plan.Snapshot, w *plan.Worker) error {
	for _, wl := range s.Workloads {
		key := client.ObjectKey{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}
		err := conn.Reader().Get(ctx, key, &kueue.LocalQueue{})
		if apierrors.IsNotFound(err) {
			w.Serves, w.Why = false, fmt.Sprintf("no LocalQueue %q", key.String())
			return nil
		}
		if err != nil {
			return fmt.Errorf("read LocalQueue %q on worker %s: %w", key, w.Name, err)
		}
	}
	return nil
}

// setTwinsApart leaves out the copies that were made for another worker in use:
// then both names lead to the same cluster, and each has to leave the other's
// copies alone. Copies for a name that is not in use any more count as this worker's.
func (o *Observer) setTwinsApart(w *plan.Worker) {
	twin := ""
	isOther := func(obj metav1.Object) bool {
		name := obj.GetAnnotations()[kinds.WorkerAnnotation]
		other := name != w.Name && o.Fleet.Status(name).Reach != fleet.Unknown
		if other {
			twin = name
		}
		return other
	}
	w.Workloads = slices.DeleteFunc(w.Workloads, func(wl *kueue.Workload) bool { return isOther(wl) })
	w.Jobs = slices.DeleteFunc(w.Jobs, func(job *unstructured.Unstructured) bool { return isOther(job) })
	w.Pods = slices.DeleteFunc(w.Pods, func(pod *unstructured.Unstructured) bool { return isOther(pod) })
	if twin != "" {
		w.Serves, w.Why = false, fmt.Sprintf("it is the same cluster as %s", twin)
	}
}
