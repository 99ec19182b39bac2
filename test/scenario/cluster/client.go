package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var errChanged = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// Write is one write that a Client is about to carry out.
type Write struct {
	Verb string
	Key  Key
	// Old is what is stored, nil when nothing is; New is what was sent, nil for a deletion.
	Old, New client.Object
}

// Client is Ferry's way to a cluster. What the embedded nil interface would
// have to do panics: Ferry is not known to call it.
type Client struct {
	client.Client
	Cluster *Cluster
	// Through carries a request; it may drop, delay or fail it. The request runs
	// on copies, so that it can arrive after its caller has gone on.
	Through func(verb string, key Key, run func() error) error
	// Inspect sees every write that takes effect, before it does.
	Inspect func(Write)
}

// Get reads from the server.
func (c *Client) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	at := Key{kindOf(obj), key.Namespace, key.Name}
	return c.Through("get", at, func() error {
		found := c.Cluster.Get(at)
		if found == nil {
			return apierrors.NewNotFound(resource(at), at.Name)
		}
		CopyInto(found, obj)
		return nil
	})
}

// List reads events; Ferry lists all else in its caches.
func (c *Client) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	events := list.(*corev1.EventList)
	return c.Through("list", Key{Kind: "Event"}, func() error {
		for _, job := range c.Cluster.Jobs() {
			if c.Cluster.NoPods != "" && job.GetKind() == Job.Kind {
				events.Items = append(events.Items, corev1.Event{
					Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: c.Cluster.NoPods, LastTimestamp: metav1.NewTime(c.Cluster.Clock.Now()),
					InvolvedObject: corev1.ObjectReference{Kind: job.GetKind(), Namespace: job.GetNamespace(), Name: job.GetName(), UID: job.GetUID()},
				})
			}
		}
		return nil
	})
}

// Create makes an object.
func (c *Client) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	at, sent := KeyOf(obj), obj.DeepCopyObject().(client.Object)
	return c.Through("create", at, func() error {
		if c.Cluster.Get(at) == nil {
			c.Inspect(Write{"create", at, nil, sent})
		}
		made, err := c.Cluster.Create(sent)
		if err != nil {
			return err
		}
		CopyInto(made, obj)
		return nil
	})
}

// Delete removes an object, under the UID precondition that Ferry must always give.
func (c *Client) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	at := KeyOf(obj)
	o := (&client.DeleteOptions{}).ApplyOptions(opts)
	return c.Through("delete", at, func() error {
		old := c.Cluster.Get(at)
		if old == nil {
			return apierrors.NewNotFound(resource(at), at.Name)
		}
		if o.Preconditions == nil || o.Preconditions.UID == nil {
			c.Cluster.Violation("%s is deleted on %s without a UID precondition", at, c.Cluster.Name)
		} else if *o.Preconditions.UID != old.GetUID() {
			return apierrors.NewConflict(resource(at), at.Name, errors.New("the UID in the precondition does not match"))
		}
		if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil && *o.Preconditions.ResourceVersion != old.GetResourceVersion() {
			return apierrors.NewConflict(resource(at), at.Name, errors.New("the resourceVersion in the precondition does not match"))
		}
		if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil && *o.Preconditions.ResourceVersion != old.GetResourceVersion() {
			return apierrors.NewConflict(resource(at), at.Name, errors.New("the resourceVersion in the precondition does not match"))
		}
		if o.PropagationPolicy == nil || *o.PropagationPolicy != metav1.DeletePropagationBackground {
			c.Cluster.Violation("%s is deleted on %s without background propagation", at, c.Cluster.Name)
		}
		c.Inspect(Write{"delete", at, old, nil})
		c.Cluster.Remove(at)
		return nil
	})
}

// Patch merges into everything but the status.
func (c *Client) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.merge(obj, patch, false)
}

// Status writes the status.
func (c *Client) Status() client.SubResourceWriter { return statusWriter{client: c} }

type statusWriter struct {
	client.SubResourceWriter
	client *Client
}

func (s statusWriter) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.client.merge(obj, patch, true)
}

func (s statusWriter) Apply(_ context.Context, applied runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	u, ok := applied.(runtime.Unstructured)
	if !ok {
		return fmt.Errorf("apply of %T is not modelled", applied)
	}
	o := &client.SubResourceApplyOptions{}
	for _, opt := range opts {
		opt.ApplyToSubResourceApply(o)
	}
	wl := &kueue.Workload{}
	if err := roundTrip(u.UnstructuredContent(), wl); err != nil {
		return err
	}
	return s.client.apply(wl, o.FieldManager, u)
}

func (c *Client) apply(sent *kueue.Workload, manager string, answer runtime.Unstructured) error {
	at := KeyOf(sent)
	return c.Through("apply", at, func() error {
		old := c.Cluster.Get(at)
		if old != nil && old.GetResourceVersion() == sent.ResourceVersion {
			next := old.DeepCopyObject().(*kueue.Workload)
			next.Status = sent.Status
			c.Inspect(Write{"apply", at, old, next})
		}
		now, err := c.Cluster.ApplyStatus(manager, at, sent.ResourceVersion, sent.UID, sent.Status)
		if err != nil {
			return err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
		if err != nil {
			return err
		}
		answer.SetUnstructuredContent(content)
		return nil
	})
}

func (c *Client) merge(obj client.Object, patch client.Patch, status bool) error {
	at := KeyOf(obj)
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return c.Through("patch", at, func() error {
		old := c.Cluster.Get(at)
		if old == nil {
			return apierrors.NewNotFound(resource(at), at.Name)
		}
		next, err := mergeInto(old, data, status)
		if err != nil {
			return err
		}
		if next.GetResourceVersion() != old.GetResourceVersion() {
			return apierrors.NewConflict(resource(at), at.Name, errChanged)
		}
		c.Inspect(Write{"patch", at, old, next})
		if err := c.Cluster.replace(old, next); err != nil {
			c.Cluster.Violation("%s: Ferry's write of %s was refused: %v", c.Cluster.Name, at, err)
			return err
		}
		CopyInto(c.Cluster.Get(at), obj)
		return nil
	})
}

// mergeInto applies a JSON merge patch to either the status or the rest.
func mergeInto(old client.Object, data []byte, status bool) (client.Object, error) {
	was, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	raw, err := jsonpatch.MergePatch(was, data)
	if err != nil {
		return nil, err
	}
	next := emptyLike(old)
	if err := json.Unmarshal(raw, next); err != nil {
		return nil, err
	}
	keepOther(old, next, status)
	return next, nil
}

func emptyLike(obj client.Object) client.Object {
	switch obj.(type) {
	case *kueue.Workload:
		return &kueue.Workload{}
	case *kueue.MultiKueueCluster:
		return &kueue.MultiKueueCluster{}
	default:
		return &unstructured.Unstructured{}
	}
}

// keepOther undoes changes outside the subresource that was written.
func keepOther(old, next client.Object, status bool) {
	switch o := old.(type) {
	case *kueue.Workload:
		n := next.(*kueue.Workload)
		if status {
			n.Spec = *o.Spec.DeepCopy()
		} else {
			n.Status = *o.Status.DeepCopy()
		}
	case *unstructured.Unstructured:
		n, kept := next.(*unstructured.Unstructured), "status"
		if status {
			kept = "spec"
		}
		if value, found := o.DeepCopy().Object[kept]; found {
			n.Object[kept] = value
		} else {
			delete(n.Object, kept)
		}
	}
}

func roundTrip(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

// CopyInto makes to an equal of from.
func CopyInto(from, to client.Object) {
	switch t := to.(type) {
	case *kueue.Workload:
		from.(*kueue.Workload).DeepCopyInto(t)
	case *kueue.LocalQueue:
		from.(*kueue.LocalQueue).DeepCopyInto(t)
	case *kueue.AdmissionCheck:
		from.(*kueue.AdmissionCheck).DeepCopyInto(t)
	case *kueue.MultiKueueConfig:
		from.(*kueue.MultiKueueConfig).DeepCopyInto(t)
	case *kueue.MultiKueueCluster:
		from.(*kueue.MultiKueueCluster).DeepCopyInto(t)
	case *unstructured.Unstructured:
		from.(*unstructured.Unstructured).DeepCopyInto(t)
	case *metav1.PartialObjectMetadata:
		from.(*metav1.PartialObjectMetadata).DeepCopyInto(t)
	default:
		panic(fmt.Sprintf("the model has no %T", to))
	}
}
