package plan_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

var asked3 = all(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), manager(func(wl *kueue.Workload) {
	wl.Status.AdmissionChecks[0].Message = "Offered to w1; w2; w3"
}))

func orchestrated(s *plan.Snapshot) { s.PreemptionTimeout = 5 * time.Minute }

// blocking: the copies on w1, w2, … have closed gates, and are blocked on them for so long; 0: not.
func blocking(blocked ...time.Duration) with {
	return func(s *plan.Snapshot) {
		for i, since := range blocked {
			copies(fmt.Sprintf("w%d", i+1), func(c *kueue.Workload) {
				c.Spec.PreemptionGates = []kueue.PreemptionGate{{Name: kinds.PreemptionGate}}
				if since > 0 {
					setCondition(c, kueue.WorkloadBlockedOnPreemptionGates, true, kueue.PreemptionGated, since)
				}
			})(s)
		}
	}
}

func opened(worker string, ago time.Duration) with {
	return copies(worker, func(c *kueue.Workload) {
		c.Status.PreemptionGates = []kueue.PreemptionGateState{{Name: kinds.PreemptionGate, Position: kueue.PreemptionGatePositionOpen, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	})
}
