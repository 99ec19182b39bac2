package demo

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
)

// kueueAdmission is the field manager of the writes by which Kueue reserves quota and admits.
const kueueAdmission = "kueue-admission"

// Ride is how a job came from its quota reservation on the manager to a worker, by the audit logs.
type Ride struct {
	Worker string
	// Total is from the reservation on the manager until the worker's API server has the Job.
	Total time.Duration
	// Checked is the part of it until Kueue on the manager had put the admission check into the Workload; it does that
	// by a write of its own, and nobody can answer a check before.
	Checked time.Duration
	// Waited is the part of it in which Kueue on the worker had the Workload's copy and had not admitted it.
	Waited time.Duration
}

// Kueue is the part of the time in which Ferry had nothing to do but wait for Kueue.
func (r Ride) Kueue() time.Duration { return r.Checked + r.Waited }

// Ferry is the rest: Ferry's own part, with the API servers' work on its requests.
func (r Ride) Ferry() time.Duration { return r.Total - r.Kueue() }

// logs are the requests of each cluster, in the order in which they were received.
type logs map[string][]audit.Request

// rides reads the audit logs for all jobs of the table.
func (f *fleet) rides(rows []Row, since time.Time) (map[string]Ride, error) {
	all := logs{}
	for _, c := range f.status.Clusters {
		err := audit.Each(c.AuditLog, since, func(r audit.Request) {
			if r.Namespace == namespace && r.Code >= 200 && r.Code < 300 {
				all[c.Name] = append(all[c.Name], r)
			}
		})
		if err != nil {
			return nil, err
		}
		// The log is in the order of the answers.
		slices.SortStableFunc(all[c.Name], func(a, b audit.Request) int { return a.At.Compare(b.At) })
	}
	rides := map[string]Ride{}
	for _, row := range rows {
		ride, err := rideOf(all, row.Job, row.Workload)
		if err != nil {
			return nil, fmt.Errorf("find the dispatch of job %s in the audit logs: %w", row.Job, err)
		}
		rides[row.Job] = ride
	}
	return rides, nil
}

// rideOf walks back from the Job on the worker to the reservation. A write can be seen, and answered to by another
// one, before its own answer is logged; so a step ends with its answer or when the next begins, whichever is first.
func rideOf(all logs, job, workload string) (Ride, error) {
	byFerry := func(r audit.Request) bool {
		return r.User == playground.UserFerry && r.Verb == "patch" && r.Resource == "workloads" && r.Name == workload
	}
	byKueue := func(r audit.Request) bool {
		return r.User == playground.UserKueue && r.FieldManager == kueueAdmission && r.Resource == "workloads" && r.Name == workload
	}
	worker, placed, found := placing(all, job)
	if !found {
		return Ride{}, fmt.Errorf("no worker was given Job %s", job)
	}
	offered, hasOffer := lastBefore(all[worker], placed.At, func(r audit.Request) bool {
		return r.User == playground.UserFerry && r.Verb == "create" && r.Resource == "workloads" && r.Name == workload
	})
	claim, hasClaim := lastBefore(all[managerName], placed.At, byFerry)
	admitted, hasAdmission := lastBefore(all[worker], claim.At, byKueue)
	nominated, hasNomination := lastBefore(all[managerName], offered.At, byFerry)
	reserved, hasReservation := lastBefore(all[managerName], nominated.At, byKueue)
	if !hasOffer || !hasClaim || !hasAdmission || !hasNomination || !hasReservation {
		return Ride{}, fmt.Errorf("a step before Job %s on worker %s is missing", job, worker)
	}
	start := earlier(reserved.Done, nominated.At)
	checked, _ := lastBefore(all[managerName], nominated.At, func(r audit.Request) bool {
		return r.User == playground.UserKueue && r.Verb == "update" && r.Subresource == "status" && r.Resource == "workloads" && r.Name == workload
	})
	waited := earlier(admitted.Done, claim.At).Sub(offered.Done)
	return Ride{
		Worker: worker, Total: placed.Done.Sub(start), Waited: max(waited, 0),
		Checked: max(earlier(checked.Done, nominated.At).Sub(start), 0),
	}, nil
}

// placing is Ferry's last creation of the job on any worker.
func placing(all logs, job string) (worker string, placed audit.Request, found bool) {
	for name, requests := range all {
		for _, r := range requests {
			if r.User == playground.UserFerry && r.Verb == "create" && r.Resource == "jobs" && r.Name == job && r.At.After(placed.At) {
				worker, placed, found = name, r, true
			}
		}
	}
	return worker, placed, found
}

func lastBefore(requests []audit.Request, at time.Time, is func(audit.Request) bool) (audit.Request, bool) {
	for _, r := range slices.Backward(requests) {
		if r.At.Before(at) && is(r) {
			return r, true
		}
	}
	return audit.Request{}, false
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func finished(wl *kueue.Workload) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
}
