package capacity_test

import (
	"slices"
	"testing"

	"ferry.dev/ferry/internal/capacity"
)

// TestClassesAreOrdered: placements compare them, so that a constant in another place would send jobs elsewhere.
func TestClassesAreOrdered(t *testing.T) {
	bestFirst := []capacity.Class{capacity.FitsNominal, capacity.FitsBorrowing, capacity.FitsPreempting, capacity.Unknown, capacity.FitsLater, capacity.NeverFits}
	if !slices.IsSorted(bestFirst) {
		t.Errorf("%v", bestFirst)
	}
}
