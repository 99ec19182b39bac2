package plan_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ferry.dev/ferry/internal/plan"
)

// TestTiesAreSpread: of a burst, about as many jobs go to each of three workers that admitted them within a second.
func TestTiesAreSpread(t *testing.T) {
	const jobs = 300
	got := map[string]int{}
	for i := range jobs {
		s := snap(nominated("w1", "w2", "w3"), offered("w1", "w2", "w3"), admitted("w1", 2*time.Second), admitted("w2", time.Second), admitted("w3", 2*time.Second))
		s.Workloads[0].UID = types.UID(fmt.Sprintf("uid-%d", i))
		for _, w := range s.Workers {
			w.Workloads[0].Annotations["kueue.x-k8s.io/multikueue-origin-uid"] = string(s.Workloads[0].UID)
		}
		for _, a := range plan.Decide(s).Manager {
			if claim, is := a.(plan.Claim); is {
				got[claim.Worker]++
			}
		}
	}
	for _, name := range []string{"w1", "w2", "w3"} {
		if n := got[name]; n < jobs/3-jobs/10 || n > jobs/3+jobs/10 {
			t.Fatalf("%d jobs went to three workers that admitted them at once as %v", jobs, got)
		}
	}
}
