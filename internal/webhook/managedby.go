package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/reason"
)

// queueLabel names a job's LocalQueue; Kueue's API packages do not export it.
const queueLabel = "kueue.x-k8s.io/queue-name"

// ManagedBy sets the managedBy field of new jobs whose queue leads to a check of
// ours. Like Kueue it goes by the queue alone: on a worker that is itself a
// manager, a copy may be dispatched further. Calling it again, as the API server
// does when another webhook changes the job, changes nothing more.
type ManagedBy struct {
	Kind *kinds.Kind
	// Kinds are those whose jobs may own others; what a job in a queue owns is left alone by Kueue.
	Kinds  *kinds.Table
	Reader client.Reader
}

var _ admission.Handler = (*ManagedBy)(nil)

// Handle implements admission.Handler. A job that cannot be read is refused with
// 400; a failing lookup refuses it with 500, because a job that slips through
// would run on the manager. Whatever else is wrong with a job is for the API
// server's validation to say.
func (m *ManagedBy) Handle(ctx context.Context, req admission.Request) admission.Response {
	job, answer := created(req, m.Kind.Name())
	if job == nil {
		return answer
	}
	queue := job.GetLabels()[queueLabel]
	patch, free := fill(job.Object, m.Kind)
	if queue == "" || !free {
		return admission.Allowed("")
	}
	ours, err := leadsToUs(ctx, m.Reader, client.ObjectKey{Namespace: req.Namespace, Name: queue})
	if err != nil {
		return unknown(ctx, m.Kind.Name(), err)
	}
	if !ours {
		return admission.Allowed("")
	}
	if why := m.Kind.LeftAlone(job); why != "" {
		return admission.Allowed("").WithWarnings(reason.LeftAlone(m.Kind.GVK.Kind, why))
	}
	owned, err := m.isOwned(ctx, job, req.Namespace)
	if err != nil {
		return unknown(ctx, m.Kind.Name(), err)
	}
	if owned {
		return admission.Allowed("")
	}
	return admission.Patched("", patch)
}

// mostOwners bounds how far up owners are asked.
const mostOwners = 10

// isOwned tells whether a job is a part of another one that is in a queue itself: Kueue leaves the part alone, and
// its owner's Workload counts for both.
func (m *ManagedBy) isOwned(ctx context.Context, job *unstructured.Unstructured, namespace string) (bool, error) {
	for range mostOwners {
		owner := metav1.GetControllerOf(job)
		if owner == nil {
			return false, nil
		}
		kind := m.Kinds.ByName(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind().String())
		if kind == nil {
			return false, nil
		}
		job = &unstructured.Unstructured{}
		job.SetGroupVersionKind(kind.GVK)
		found, err := get(ctx, m.Reader, client.ObjectKey{Namespace: namespace, Name: owner.Name}, kind.GVK.Kind, job)
		if unserved := (*meta.NoKindMatchError)(nil); errors.As(err, &unserved) {
			return false, nil
		}
		if !found || job.GetUID() != owner.UID {
			return false, err
		}
		if job.GetLabels()[queueLabel] != "" {
			return true, nil
		}
	}
	return false, nil
}

// created reads the object that a request is about to create. It is nil for
// requests that need no decision, which the answer then is the answer to.
func created(req admission.Request, kind string) (*unstructured.Unstructured, admission.Response) {
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return nil, admission.Allowed("")
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(req.Object.Raw); err != nil {
		return nil, admission.Errored(http.StatusBadRequest, fmt.Errorf("the %s cannot be read as JSON: %w", kind, err))
	}
	return obj, admission.Response{}
}

// unknown refuses what could end up running on the manager.
func unknown(ctx context.Context, kind string, err error) admission.Response {
	logf.FromContext(ctx).Error(err, "Refusing a job because where it is to run could not be looked up", "kind", kind)
	return admission.Errored(http.StatusInternalServerError,
		fmt.Errorf("whether this %s is to run on a worker is unknown, so Ferry refuses it; try again: %w", kind, err))
}

// fill returns the one change that puts MultiKueue's name into the kind's field, with
// the parents that it lacks; false if the field is taken, or cannot exist.
func fill(object map[string]any, kind *kinds.Kind) (jsonpatch.Operation, bool) {
	path, builtin := kind.ManagedBy, kind.OwnManager
	for i, field := range path {
		value, last := object[field], i == len(path)-1
		if value == nil || last && builtin != "" && value == builtin {
			return jsonpatch.NewOperation("add", pointer(path[:i+1]), nested(path[i+1:], kind.ManagedByValue())), true
		}
		child, isObject := value.(map[string]any)
		if !isObject {
			break
		}
		object = child
	}
	return jsonpatch.Operation{}, false
}

// nested is a value inside objects with these fields, the outermost first.
func nested(fields kinds.Path, value string) any {
	if len(fields) == 0 {
		return value
	}
	return map[string]any{fields[0]: nested(fields[1:], value)}
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer writes a path as a JSON pointer (RFC 6901).
func pointer(path kinds.Path) string {
	var s strings.Builder
	for _, field := range path {
		s.WriteString("/" + pointerEscaper.Replace(field))
	}
	return s.String()
}
