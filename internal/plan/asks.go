package plan

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

// Asks tells what an action for a worker asks for, whatever version of an object it
// was decided on: two that ask for the same are a repetition.
func Asks(action Action) string {
	what := ""
	switch a := action.(type) {
	case CreateWorkload:
		what = madeFor(a.Copy)
	case CreateJob:
		what = madeFor(a.Copy)
	case OwnWorkload:
		what = string(a.Owner.GetUID())
	case EditJob:
		what = wanted(a.Want)
	case SetPriority:
		what = encoded(a.Priority)
	case Resize:
		what = encoded(a.PodSets)
	case Delete:
		what = string(a.UID)
	case AskWarnings:
		what = a.Due.String()
	case LetGo:
		what = string(a.Copy.GetUID())
	}
	return action.String() + " " + what
}

func madeFor(obj metav1.Object) string {
	return fmt.Sprint(originUID(obj), " ", obj.GetAnnotations()[kinds.ReservationAnnotation])
}

// wanted is all of an object that an edit may change.
func wanted(obj *unstructured.Unstructured) string {
	return encoded(obj.Object["spec"], obj.GetLabels(), obj.GetAnnotations())
}

func encoded(parts ...any) string {
	raw, _ := json.Marshal(parts) // cannot fail: the parts came as JSON
	return string(raw)
}
