package apply

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/reason"
)

// mostWarnings bounds how many of a namespace's warnings are read for one job.
const mostWarnings = 500

// warnings finds the last warning about a job on a worker. It only informs: where it cannot be read nothing is said.
func (a *Applier) warnings(ctx context.Context, worker string, to client.Client, ref kinds.Ref, act plan.AskWarnings) {
	list := &corev1.EventList{}
	err := to.List(ctx, list, client.InNamespace(ref.Namespace), client.Limit(mostWarnings),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning)})
	if err != nil {
		log.FromContext(ctx).V(1).Info("Cannot read the worker's events", "worker", worker, "namespace", ref.Namespace, "error", err.Error())
	}
	last, text := time.Time{}, ""
	for i := range list.Items {
		e := &list.Items[i]
		if at := lastSeen(e); at.After(last) && isAbout(ctx, to, e, at, act.Jobs) {
			last, text = at, reason.OnWorker(e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		}
	}
	a.Memory.Warned(worker, ref, text, a.Clock.Now())
}

// lastSeen is when an event happened last, by the worker's clock.
func lastSeen(e *corev1.Event) time.Time {
	last := e.CreationTimestamp.Time
	times := []time.Time{e.FirstTimestamp.Time, e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// isAbout tells whether an event is about one of these objects, or about a pod or a part of it since it was made. Parts
// are known by their names, which begin with the job's, as an event does not say whose its object is.
func isAbout(ctx context.Context, to client.Client, e *corev1.Event, at time.Time, jobs []*unstructured.Unstructured) bool {
	about := e.InvolvedObject
	for _, job := range jobs {
		if about.UID == job.GetUID() {
			return true
		}
		made := job.GetCreationTimestamp()
		if about.Kind == "Workload" || !strings.HasPrefix(about.Name, job.GetName()+"-") || at.Before(made.Time) {
			continue
		}
		if !ofAnother(ctx, to, about, job) {
			return true
		}
	}
	return false
}

// ofAnother tells whether the worker has another job of this kind whose name is a longer beginning of an object's name:
// train-2-x7k is of train-2, if there is such a job, and else of train.
func ofAnother(ctx context.Context, to client.Client, about corev1.ObjectReference, job *unstructured.Unstructured) bool {
	name, cut := about.Name, len(about.Name)
	if about.Kind != job.GetKind() {
		cut = strings.LastIndexByte(name, '-')
	}
	for ; cut > len(job.GetName()); cut = strings.LastIndexByte(name[:cut], '-') {
		other := &metav1.PartialObjectMetadata{}
		other.SetGroupVersionKind(job.GroupVersionKind())
		err := to.Get(ctx, client.ObjectKey{Namespace: job.GetNamespace(), Name: name[:cut]}, other)
		if !apierrors.IsNotFound(err) {
			return true // it is there, or nobody knows
		}
	}
	return false
}
