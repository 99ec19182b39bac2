package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/plan"
)

// TestClaimOf: a finished slice of an elastic job still names the worker that it ran on.
func TestClaimOf(t *testing.T) {
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

// TestHostIsForgottenAtTheEnd: once the Workloads of a job that is over are deleted, only the memory tells it from one whose Workload
// Kueue took away because it was edited. Whose status does not tell must keep it then.
func TestHostIsForgottenAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		manager, worker []*kueue.Workload
		want            string
	}{
		"it runs":                        {[]*kueue.Workload{on("w1", false)}, []*kueue.Workload{on("", false)}, "w1"},
		"its Workload is finished":       {[]*kueue.Workload{on("w1", true)}, nil, ""},
		"the copy is":                    {[]*kueue.Workload{on("w1", false)}, []*kueue.Workload{on("", true)}, ""},
		"of several one":                 {[]*kueue.Workload{on("w1", true), on("w1", false)}, []*kueue.Workload{on("", true), on("", false)}, "w1"},
		"its Workload was taken away":    {nil, []*kueue.Workload{on("", false)}, "w1"},
		"nothing is left of it anywhere": {nil, nil, "w1"},
	} {
		m := NewMemory()
		m.host(train, "w1")
		if isOver(&plan.Snapshot{Host: "w1", Workloads: c.manager, Workers: []plan.Worker{{Name: "w2"}, {Name: "w1", Workloads: c.worker}}}) {
			m.over(train)
		}
		if got := m.host(train, ""); got != c.want {
			t.Errorf("%s: host is %q, want %q", name, got, c.want)
		}
	}
}

// on is a Workload that is assigned to a worker.
func on(worker string, finished bool) *kueue.Workload {
	wl := &kueue.Workload{}
	if worker != "" {
		wl.Status.ClusterName = &worker
	}
	if finished {
		meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
	}
	return wl
}
