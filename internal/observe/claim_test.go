package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestClaimOf: a finished slice of an elastic job still names the worker that it ran on.
func TestClaimOf(t *testing.T) {
	on := func(worker string, finished bool) *kueue.Workload {
		wl := &kueue.Workload{}
		if worker != "" {
			wl.Status.ClusterName = &worker
		}
		if finished {
			meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		}
		return wl
	}
	for name, c := range map[string]struct {
		wls  []*kueue.Workload
		want string
	}{
		"none":        {nil, ""},
		"not claimed": {[]*kueue.Workload{on("", false)}, ""},
		"claimed":     {[]*kueue.Workload{on("", false), on("w1", false)}, "w1"},
		"finished":    {[]*kueue.Workload{on("w1", true)}, "w1"},
		"moved since": {[]*kueue.Workload{on("w1", true), on("w2", false)}, "w2"},
	} {
		if got := claimOf(c.wls); got != c.want {
			t.Errorf("%s: claim is %q, want %q", name, got, c.want)
		}
	}
}
