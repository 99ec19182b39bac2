package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// Fact is that a condition of a copy holds, on some worker. The worker's time tells one occurrence
// from the next and nothing more: clocks differ.
type Fact struct {
	UID       types.UID
	Condition string
	At        int64
}

// FactOf tells whether a condition of a copy holds.
func FactOf(c *kueue.Workload, condition string) (fact Fact, holds bool) {
	is := meta.FindStatusCondition(c.Status.Conditions, condition)
	if is == nil || is.Status != metav1.ConditionTrue {
		return Fact{}, false
	}
	return Fact{c.UID, condition, is.LastTransitionTime.Unix()}, true
}

// outlived is the fact of a job's copy that is over and shows something running.
const outlived = "Outlived"

// Restless tells whether the copy of a job is over and its status shows something running.
func Restless(kind *kinds.Kind, job *unstructured.Unstructured) (fact Fact, holds bool) {
	if ended, known := kind.Ended(job); !ended || !known || kind.AtRest(job) {
		return Fact{}, false
	}
	return Fact{job.GetUID(), outlived, kinds.LastTransition(job).Unix()}, true
}

// since is when a condition of a copy was first seen to hold.
func (v *view) since(c *kueue.Workload, condition string) time.Time {
	return v.seen(FactOf(c, condition))
}

// seen is when a fact was first seen; where nobody says, the worker's word has to do.
func (v *view) seen(fact Fact, holds bool) time.Time {
	if at, known := v.Since[fact]; known || !holds {
		return at
	}
	return time.Unix(fact.At, 0)
}
