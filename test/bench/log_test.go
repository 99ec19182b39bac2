package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/audit"
)

// log is what the API servers were asked, by cluster, in the order of arrival.
type log map[string][]audit.Request

func read(b *testing.B, p *playground.Playground, since time.Time) log {
	l := log{}
	for _, c := range p.Clusters() {
		err := audit.Each(c.AuditLog(), since, func(r audit.Request) { l[c.Name] = append(l[c.Name], r) })
		if err != nil {
			b.Fatal(err)
		}
		slices.SortStableFunc(l[c.Name], func(x, y audit.Request) int { return x.At.Compare(y.At) })
	}
	return l
}

// latency is from Kueue's reservation on the manager to the Job on a worker.
func (l log) latency(b *testing.B, user, job string) time.Duration {
	for _, r := range l["manager"] {
		if r.User == playground.UserKueue && r.Verb == "patch" && r.Resource == "workloads" && r.Subresource == "status" &&
			r.FieldManager == "kueue-admission" && r.Code < 300 && strings.HasPrefix(r.Name, "job-"+job+"-") {
			return l.placed(b, user, job).Sub(r.Done)
		}
	}
	b.Fatalf("job %s: no quota reservation in the audit log", job)
	return 0
}

// placed is when a worker's API server had the job.
func (l log) placed(b *testing.B, user, job string) time.Time {
	for cluster, requests := range l {
		for _, r := range requests {
			if cluster != "manager" && r.User == user && r.Verb == "create" && r.Resource == "jobs" && r.Name == job && r.Code < 300 {
				return r.Done
			}
		}
	}
	b.Fatalf("job %s: no worker got it", job)
	return time.Time{}
}

// requests counts what the dispatcher asked of the clusters with the prefix,
// but for watches, probes and leases, which do not grow with the jobs. Stock
// MultiKueue is part of Kueue on the manager, so there all of Kueue is counted.
func (l log) requests(user, prefix string) int {
	n := 0
	for cluster, requests := range l {
		if !strings.HasPrefix(cluster, prefix) {
			continue
		}
		for _, r := range requests {
			if byDispatcher(r.User, user, cluster) && r.Verb != "watch" && r.Resource != "leases" && r.Resource != "" {
				n++
			}
		}
	}
	return n
}

// copies counts the Workloads that the dispatcher made on workers.
func (l log) copies(user string) int {
	n := 0
	for cluster, requests := range l {
		for _, r := range requests {
			if cluster != "manager" && r.User == user && r.Verb == "create" && r.Resource == "workloads" && r.Code < 300 {
				n++
			}
		}
	}
	return n
}

func byDispatcher(is, user, cluster string) bool {
	return is == user || (cluster == "manager" && is == playground.UserKueue)
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
