package plan_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// endedWith is the status of a job of a kind that ended some time ago, with so many of its parts running.
func endedWith(kind *kinds.Kind, active int64, ago time.Duration) map[string]any {
	status := map[string]any{}
	var conditions []any
	for _, t := range []string{"Succeeded", "Completed", "Complete"} {
		conditions = append(conditions, map[string]any{"type": t, "status": "True", "lastTransitionTime": now.Add(-ago).Format(time.RFC3339)})
	}
	status["conditions"] = conditions
	for _, path := range kind.Running {
		part := map[string]any{"name": "worker", path[2]: active, "succeeded": int64(1)}
		if path[0] == "replicaStatuses" {
			status[path[0]] = map[string]any{"Worker": part}
		} else {
			status[path[0]] = []any{part}
		}
	}
	return status
}

func restless(kind *kinds.Kind, managerActive, workerActive int64, ago time.Duration, more ...with) plan.Snapshot {
	return snap(append([]with{of(*kind), claimedBy("w1"), managerJob(func(job *unstructured.Unstructured) {
		job.Object["status"] = endedWith(kind, managerActive, ago)
	}), jobStatus("w1", endedWith(kind, workerActive, ago))}, more...)...)
}

// TestTheLastStatusIsThatOfAJobAtRest: of every kind whose pods may outlive its end, the copy stays until its status
// says that nothing runs, though not for ever, and the manager never shows something running that was removed.
func TestTheLastStatusIsThatOfAJobAtRest(t *testing.T) {
	all := kinds.NewTable(kinds.Frameworks()).Rows()
	if !slices.ContainsFunc(all, func(k *kinds.Kind) bool { return len(k.Running) > 0 }) {
		t.Fatal("no kind has pods that may outlive it")
	}
	finished := managerCondition(kueue.WorkloadFinished) // a second ago
	for _, k := range all {
		if len(k.Running) == 0 {
			continue
		}
		gone := "w1: delete " + k.GVK.Kind + " train, delete Workload wl"
		mirror := "manager: mirror status of " + k.GVK.Kind + " train"
		for name, c := range map[string]struct {
			when plan.Snapshot
			want string
		}{
			"over, its workers run on":         {restless(k, 2, 2, time.Second), "Over | again in 29s"},
			"over, one of them ended":          {restless(k, 2, 1, time.Second), "Over | " + mirror + " | again in 29s"},
			"over, all ended":                  {restless(k, 2, 0, time.Second), "Over | " + mirror + " | " + gone},
			"finished, its workers run on":     {restless(k, 2, 2, time.Minute, finished), "Finished | again in 29s"},
			"finished, all ended":              {restless(k, 2, 0, time.Minute, finished), "Finished | " + mirror + " | " + gone},
			"finished and shown":               {restless(k, 0, 0, time.Minute, finished), "Finished | " + gone},
			"over for too long":                {restless(k, 2, 2, time.Hour), "Over | " + mirror + " | " + gone},
			"over by a clock that is ahead":    {restless(k, 2, 2, -time.Hour), "Over | again in 30s"},
			"finished, out of reach":           {restless(k, 2, 2, time.Hour, finished, lost("w1", time.Hour)), "Finished"},
			"finished, its copy was taken":     {restless(k, 2, 0, time.Hour, finished, func(s *plan.Snapshot) { s.Workers[0].Jobs = nil }), "Finished | " + mirror + " | w1: delete Workload wl"},
			"finished, the copy is being gone": {restless(k, 0, 2, time.Hour, finished, func(s *plan.Snapshot) { deleted(s.Workers[0].Jobs[0]) }), "Finished | w1: delete Workload wl"},
		} {
			t.Run(k.Name()+"/"+name, func(t *testing.T) {
				p := plan.Decide(c.when)
				if got := show(p); got != c.want {
					t.Errorf("plan is\n  %s\nwant\n  %s", got, c.want)
				}
				for _, a := range p.Manager {
					m, _ := a.(plan.MirrorStatus)
					after := m.Job.DeepCopy()
					after.Object["status"] = m.Status
					if removes := len(p.Workers["w1"]) > 0; removes && !k.AtRest(after) {
						t.Errorf("the copy goes and the manager shows %v", m.Status)
					}
				}
			})
		}
	}
}
