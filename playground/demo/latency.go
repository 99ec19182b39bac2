package demo

import (
	"fmt"
	"maps"
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

// way is how one Workload goes: what is made for it on a worker.
type way struct {
	workload string
	objects  []made
}

// made is an object by its resource and name.
type made struct{ resource, name string }

// rides reads the audit logs for all jobs of the table. A job with several ways counts with the slowest; for one that has
// a way of which the logs do not tell, missing says why.
func (f *fleet) rides(ways map[string][]way, since time.Time) (rides map[string]Ride, missing []error, err error) {
	all := logs{}
	for _, c := range f.status.Clusters {
		err := audit.Each(c.AuditLog, since, func(r audit.Request) {
			if r.Namespace == namespace && r.Code >= 200 && r.Code < 300 {
				all[c.Name] = append(all[c.Name], r)
			}
		})
		if err != nil {
			return nil, nil, err
		}
		// The log is in the order of the answers.
		slices.SortStableFunc(all[c.Name], func(a, b audit.Request) int { return a.At.Compare(b.At) })
	}
	rides = map[string]Ride{}
	for _, job := range slices.Sorted(maps.Keys(ways)) {
		for _, w := range ways[job] {
			ride, err := rideOf(all, w)
			if err != nil {
				missing = append(missing, fmt.Errorf("the dispatch of %s is not in the audit logs: %w", job, err))
			} else if ride.Total > rides[job].Total {
				rides[job] = ride
			}
		}
	}
	return rides, missing, nil
}

// rideOf walks back from the Job on the worker to the reservation. A write can be seen, and answered to by another
// one, before its own answer is logged; so a step ends with its answer or when the next begins, whichever is first.
func rideOf(all logs, w way) (Ride, error) {
	worker, placed, found := placing(all, w.objects)
	if !found {
		return Ride{}, fmt.Errorf("no worker was given what Workload %s is for", w.workload)
	}
	here, there := all[playground.ManagerName], all[worker]
	applied := func(user, verb, manager string) func(audit.Request) bool {
		return func(r audit.Request) bool {
			return r.User == user && r.Verb == verb && r.FieldManager == manager && r.Resource == "workloads" && r.Name == w.workload &&
				(verb == "create" || r.Subresource == "status")
		}
	}
	offered, hasOffer := lastBefore(there, placed.At, applied(playground.UserFerry, "create", ""))
	claim, hasClaim := lastBefore(here, placed.At, applied(playground.UserFerry, "patch", kueueAdmission))
	admitted, hasAdmission := lastBefore(there, claim.At, applied(playground.UserKueue, "patch", kueueAdmission))
	nominated, hasNomination := lastBefore(here, offered.At, applied(playground.UserFerry, "patch", kueueAdmission))
	reserved, hasReservation := lastBefore(here, nominated.At, applied(playground.UserKueue, "patch", kueueAdmission))
	if slices.Contains([]bool{hasOffer, hasClaim, hasAdmission, hasNomination, hasReservation}, false) {
		return Ride{}, fmt.Errorf("a step before %s %s on worker %s is missing", placed.Resource, placed.Name, worker)
	}
	start := earlier(reserved.Done, nominated.At)
	checked, _ := lastBefore(here, nominated.At, applied(playground.UserKueue, "update", ""))
	return Ride{
		Worker: worker, Total: placed.Done.Sub(start),
		Checked: max(earlier(checked.Done, nominated.At).Sub(start), 0),
		Waited:  max(earlier(admitted.Done, claim.At).Sub(offered.Done), 0),
	}, nil
}

// placing is Ferry's last creation of any of the objects on any worker.
func placing(all logs, objects []made) (worker string, placed audit.Request, found bool) {
	for name, requests := range all {
		for _, r := range requests {
			if r.User == playground.UserFerry && r.Verb == "create" && r.At.After(placed.At) && slices.Contains(objects, made{r.Resource, r.Name}) {
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
