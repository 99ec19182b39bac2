package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Fact is that a condition of a copy holds. The worker's time tells one occurrence
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

// since is when a condition of a copy was first seen to hold; where nobody says, the worker's word has to do.
func (v *view) since(c *kueue.Workload, condition string) time.Time {
	fact, holds := FactOf(c, condition)
	if at, seen := v.Since[fact]; seen || !holds {
		return at
	}
	return time.Unix(fact.At, 0)
}
