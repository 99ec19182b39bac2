package observe

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

var (
	workloadKind = kueue.SchemeGroupVersion.WithKind("Workload")
	queueKind    = kueue.SchemeGroupVersion.WithKind("LocalQueue")
)

// look is a Snapshot on its way, with what is the same for all workers made once.
type look struct {
	*plan.Snapshot
	// job, workloads and queues are keys of the job, and of its Workloads and their queues, as fleet.Conn takes them.
	job       string
	workloads []string
	queues    []string
	found     []client.Object // room for one answer
	known     bool            // whether something is remembered of the job on the worker that is looked at now
}

func lookFor(s *plan.Snapshot) *look {
	l := &look{Snapshot: s, job: s.Ref.Key().String(), found: make([]client.Object, 0, 4)}
	for _, wl := range s.Workloads {
		l.workloads = append(l.workloads, client.ObjectKeyFromObject(wl).String())
		if queue := (client.ObjectKey{Namespace: wl.Namespace, Name: string(wl.Spec.QueueName)}).String(); !slices.Contains(l.queues, queue) {
			l.queues = append(l.queues, queue)
		}
	}
	return l
}

// worker is one worker as the job sees it now.
func (o *Observer) worker(s *look, name string, inConfig bool) (plan.Worker, error) {
	status := o.Fleet.Status(name)
	w := plan.Worker{Name: name, InConfig: inConfig, Leaving: status.Leaving, Unread: !status.Seen, Fit: capacity.Fit{Class: capacity.Unknown}, Facts: o.facts(name)}
	w.Moves = w.Facts.Draining && o.Memory.moving(name, s.Ref)
	conn, reachable := o.Fleet.Conn(name)
	w.LostSince = o.lostSince(s.Snapshot, name, status, inConfig)
	if !reachable {
		return w, nil
	}
	w.Reachable = true
	s.known = o.Memory.knows(name, s.Ref)
	err := o.readWorker(conn, s, &w)
	switch {
	case w.Blind:
		w.LostSince = o.missingSince(s.Snapshot, name)
	case inConfig && s.known:
		o.Memory.present(s.Ref, name)
	}
	if err != nil && o.lostMeanwhile(name, conn) {
		// The connection went away between two reads: the caches are void.
		return plan.Worker{Name: name, InConfig: inConfig, Unread: !status.Seen, LostSince: s.Now, Fit: w.Fit, Facts: w.Facts}, nil
	}
	if err == nil {
		o.noteSince(s, &w)
	}
	return w, err
}

func (o *Observer) lostMeanwhile(name string, conn fleet.Conn) bool {
	now, reachable := o.Fleet.Conn(name)
	return !reachable || now != conn
}

func (o *Observer) readWorker(conn fleet.Conn, s *look, w *plan.Worker) error {
	wls, err := findAll[*kueue.Workload](conn, workloadKind, w.Name, s)
	if err != nil {
		return err
	}
	w.Workloads = recall(o.Memory, w.Name, s.Ref, workloadKind.GroupKind(), wls, s.Now)
	if s.known {
		w.Sought = o.Memory.soughtOn(w.Name, s.Ref, len(w.Workloads) > 0, s.Now)
	}
	if s.Kind == nil {
		return nil
	}
	if err := o.readUnmarked(conn, s, w); err != nil {
		return err
	}
	w.Serves, w.Why = conn.Serves(s.Kind.GVK)
	w.Blind = !w.Serves
	if w.Serves {
		if err := o.readJob(conn, s, w); err != nil {
			return err
		}
		if err := readQueue(conn, s, w); err != nil {
			return err
		}
	}
	o.setTwinsApart(w)
	o.readStart(s.Snapshot, w)
	o.readRest(s, w)
	o.predict(conn, s, w)
	return nil
}

// readRest adds what is remembered of the job on the worker, and of its kind: whether it rests, above all.
func (o *Observer) readRest(s *look, w *plan.Worker) {
	var r rest
	resting := false
	if s.known {
		w.JobGone = o.Memory.jobGone(w.Name, s.Ref, len(w.Jobs) > 0, s.Now)
		w.Trouble = o.Memory.troubleOf(w.Name, s.Ref)
		r, resting = o.Memory.resting(w.Name, s.Ref, s.Now)
	}
	if !resting {
		r, resting = o.restForKind(s.Snapshot, w)
	}
	if resting {
		w.Serves, w.Why, w.AskAgain = false, r.why, r.until
	}
}

// readJob finds our copy of the job, or that somebody else's object has its name.
func (o *Observer) readJob(conn fleet.Conn, s *look, w *plan.Worker) error {
	jobs, err := o.jobsOn(conn, w.Name, s)
	if notServed := isNotServed(err); notServed != nil {
		w.Serves, w.Blind, w.Why = false, true, notServed.Error()
		return nil
	}
	if err != nil {
		return err
	}
	for _, job := range jobs {
		switch {
		case kinds.IsCopyOf(job, s.Ref):
			w.Jobs = append(w.Jobs, job)
		default:
			w.Foreign = true
			if kinds.Unmarked(job) {
				w.Unmarked.Jobs = append(w.Unmarked.Jobs, job)
			}
		}
	}
	if err := o.readUnmarkedMembers(conn, s, w); err != nil {
		return err
	}
	if err := o.readPods(conn, s, w); err != nil {
		return err
	}
	if len(jobs) > 0 || !s.Kind.Named() {
		return nil
	}
	return o.findHolder(conn, s, w)
}

// jobsOn are the objects on a worker that make up the job, or have its name.
func (o *Observer) jobsOn(conn fleet.Conn, worker string, s *look) ([]*unstructured.Unstructured, error) {
	if s.Kind.Group {
		return o.objectsOn(conn, worker, s, s.Kind.GVK)
	}
	found, err := conn.Find(s.Kind.GVK, s.job)
	if err != nil {
		return nil, fmt.Errorf("read %s on worker %s: %w", s.Ref, worker, err)
	}
	var cached []*unstructured.Unstructured
	if job, ok := found.(*unstructured.Unstructured); ok {
		cached = append(cached, job)
	}
	return recall(o.Memory, worker, s.Ref, s.Kind.GVK.GroupKind(), cached, s.Now), nil
}

// objectsOn are all objects of one kind on a worker that belong to the job.
func (o *Observer) objectsOn(conn fleet.Conn, worker string, s *look, gvk schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	found, err := findAll[*unstructured.Unstructured](conn, gvk, worker, s)
	if err != nil {
		return nil, err
	}
	return recall(o.Memory, worker, s.Ref, gvk.GroupKind(), found, s.Now), nil
}

// findAll gives what a worker's cache holds of a job, of one kind.
func findAll[T client.Object](conn fleet.Conn, gvk schema.GroupVersionKind, worker string, s *look) ([]T, error) {
	found, err := conn.FindAll(gvk, s.Ref, s.found[:0])
	if err != nil {
		return nil, fmt.Errorf("find the %ss of %s on worker %s: %w", gvk.Kind, s.Ref, worker, err)
	}
	s.found = found
	if len(found) == 0 {
		return nil, nil
	}
	objs := make([]T, 0, len(found))
	for _, obj := range found {
		if o, ok := obj.(T); ok {
			objs = append(objs, o)
		}
	}
	return objs, nil
}

// readPods finds the pods of our copy. They matter only for what the manager
// shows, so a worker that does not let them be read can have the job all the same.
func (o *Observer) readPods(conn fleet.Conn, s *look, w *plan.Worker) error {
	if !s.Kind.Pods {
		return nil
	}
	pods, err := o.objectsOn(conn, w.Name, s, s.Kind.PodKind().GVK)
	if err != nil && isNotServed(err) == nil {
		return err
	}
	w.Pods = pods
	return nil
}

// isNotServed is the error that tells that a worker does not let a kind be read; nil for any other, and for none.
func isNotServed(err error) *fleet.NotServedError {
	if err == nil {
		return nil // as nearly always: what is looked for takes room
	}
	var notServed *fleet.NotServedError
	errors.As(err, &notServed)
	return notServed
}

// readUnmarked finds copies of the job's Workloads that have our origin, and nothing else of ours: only their names tell.
func (o *Observer) readUnmarked(conn fleet.Conn, s *look, w *plan.Worker) error {
	for i, wl := range s.Workloads {
		if slices.ContainsFunc(w.Workloads, func(ours *kueue.Workload) bool { return ours.Name == wl.Name }) {
			continue
		}
		c, err := conn.Find(workloadKind, s.workloads[i])
		if err != nil {
			return fmt.Errorf("read Workload %q on worker %s: %w", wl.Name, w.Name, err)
		}
		if c, ok := c.(*kueue.Workload); ok && kinds.Unmarked(c) {
			w.Unmarked.Workloads = append(w.Unmarked.Workloads, c)
		}
	}
	return nil
}

// readUnmarkedMembers does the same for the objects of a group.
func (o *Observer) readUnmarkedMembers(conn fleet.Conn, s *look, w *plan.Worker) error {
	if !s.Kind.Group {
		return nil
	}
	for _, job := range s.Jobs {
		if slices.ContainsFunc(w.Jobs, func(ours *unstructured.Unstructured) bool { return ours.GetName() == job.GetName() }) {
			continue
		}
		c, err := conn.Find(s.Kind.GVK, client.ObjectKeyFromObject(job).String())
		if err != nil {
			return fmt.Errorf("read %s %q on worker %s: %w", s.Kind.GVK.Kind, job.GetName(), w.Name, err)
		}
		if c, ok := c.(*unstructured.Unstructured); ok && kinds.Unmarked(c) {
			w.Unmarked.Jobs = append(w.Unmarked.Jobs, c)
		}
	}
	return nil
}

// findHolder finds out whether somebody else's object has the job's name.
func (o *Observer) findHolder(conn fleet.Conn, s *look, w *plan.Worker) error {
	holder, err := conn.FindName(s.Kind.GVK, s.job)
	if err != nil {
		return fmt.Errorf("look up the name %s on worker %s: %w", s.Ref, w.Name, err)
	}
	// One with our label that the filtered cache does not show yet is ours, on its way.
	w.Foreign = holder != nil && holder.GetLabels()[kueue.MultiKueueOriginLabel] != o.Policy.Origin
	if w.Foreign {
		w.Holder = plan.Holder{
			Origin: holder.GetLabels()[kueue.MultiKueueOriginLabel], Workload: kinds.LinkedTo(holder),
			OriginUID: holder.GetAnnotations()[kueue.MultiKueueOriginUIDAnnotation],
		}
	}
	return nil
}

// readQueue finds out whether the worker has the queue that the job names.
func readQueue(conn fleet.Conn, s *look, w *plan.Worker) error {
	for _, key := range s.queues {
		queue, err := conn.Find(queueKind, key)
		if err != nil {
			return fmt.Errorf("read LocalQueue %q on worker %s: %w", key, w.Name, err)
		}
		if queue == nil {
			w.Serves, w.Why = false, fmt.Sprintf("no LocalQueue %q", key)
			return nil
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
		other := name != "" && name != w.Name && o.Fleet.Status(name).Reach != fleet.Unknown
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
