package observe

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

var (
	start = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	train = kinds.Ref{Kind: "Job.batch", Namespace: "team", Name: "train"}
)

func workload(uid, version string) *kueue.Workload {
	wl := &kueue.Workload{}
	wl.Namespace, wl.Name, wl.UID, wl.ResourceVersion = "team", "job-train", types.UID(uid), version
	return wl
}

// believed is the version that a job's Workload on w1 is taken to have; empty: none.
func believed(m *Memory, now time.Time, cached ...*kueue.Workload) string {
	wls := recall(m, "w1", train, workloadKind.GroupKind(), cached, now)
	if len(wls) == 0 {
		return ""
	}
	if wls[0].DeletionTimestamp != nil {
		return wls[0].ResourceVersion + " going"
	}
	return wls[0].ResourceVersion
}

func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		happened func(*Memory)
		later    time.Duration
		cached   []*kueue.Workload
		want     string
	}{
		"nothing written":                     {cached: []*kueue.Workload{workload("a", "5")}, want: "5"},
		"created, and not shown yet":          {happened: wrote("7"), want: "7"},
		"updated, and an older version shown": {happened: wrote("7"), cached: []*kueue.Workload{workload("a", "5")}, want: "7"},
		"updated since by somebody else":      {happened: wrote("7"), cached: []*kueue.Workload{workload("a", "9")}, want: "9"},
		"created, and never shown":            {happened: wrote("7"), later: remembered + time.Second, want: ""},
		"an older version shown for long":     {happened: wrote("7"), later: time.Hour, cached: []*kueue.Workload{workload("a", "5")}, want: "7"},
		"seen, and deleted by somebody":       {happened: func(m *Memory) { wrote("7")(m); m.Saw("w1", train, workload("a", "8")) }, want: ""},
		"an older version seen":               {happened: func(m *Memory) { wrote("7")(m); m.Saw("w1", train, workload("a", "5")) }, want: "7"},
		"the connection was lost":             {happened: func(m *Memory) { wrote("7")(m); m.Lost("w1") }, want: ""},
		"another connection was lost":         {happened: func(m *Memory) { wrote("7")(m); m.Lost("w2") }, want: "7"},
		"found to be gone":                    {happened: func(m *Memory) { wrote("7")(m); m.Gone("w1", train, "a") }, want: ""},
		"deletion accepted":                   {happened: deleted, cached: []*kueue.Workload{workload("a", "5")}, want: "5 going"},
		"deletion came to nothing":            {happened: deleted, later: deletedFor + time.Second, cached: []*kueue.Workload{workload("a", "5")}, want: "5"},
		"deleted, and made anew":              {happened: deleted, cached: []*kueue.Workload{workload("b", "9")}, want: "9"},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory()
			if c.happened != nil {
				c.happened(m)
			}
			if got := believed(m, start.Add(c.later), c.cached...); got != c.want {
				t.Errorf("believed is %q, want %q", got, c.want)
			}
		})
	}
}

func wrote(version string) func(*Memory) {
	return func(m *Memory) { m.Wrote("w1", train, workload("a", version), start) }
}

func deleted(m *Memory) { m.Deleted("a", start) }

func TestMemoryForgetsAJob(t *testing.T) {
	m := NewMemory()
	m.host(train, "w1")
	m.Rest("w1", train, plan.Rest{Why: "refused"}, start)
	first := m.missingSince(train, "w1", start)
	m.Mirrored(train, "uid", map[string]any{"active": 1, "new": 1}, map[string]any{"active": 1})
	if m.host(train, "") != "w1" || m.prunedOf(train) == nil || !first.Equal(m.missingSince(train, "w1", start.Add(time.Hour))) {
		t.Fatal("what was noted is not remembered")
	}
	m.Forget(train)
	if m.host(train, "") != "" || m.prunedOf(train) != nil || m.missingSince(train, "w1", start.Add(time.Hour)).Equal(start) {
		t.Error("a job that is gone is remembered")
	}
}

// TestForgettingLooksAtOneJob: many jobs may end at once, so what a job leaves behind is found by the job, not by a
// look at all that is known. The writes are the exception: they expire by themselves.
func TestForgettingLooksAtOneJob(t *testing.T) {
	m := NewMemory()
	for _, worker := range []string{"w1", "w2"} {
		m.Rest(worker, train, plan.Rest{Why: "refused"}, start)
		m.missingSince(train, worker, start)
		m.Sought(worker, train, "", start)
		m.Failed(worker, train, "create", "refused", start)
		m.Warned(worker, train, "no node", start)
		m.since(worker, train, []plan.Fact{{}}, start)
		m.Placed(worker, train)
		m.claimedSince(train, worker, start)
		m.host(train, worker)
	}
	m.Mirrored(train, "uid", map[string]any{"active": 1, "new": 1}, map[string]any{"active": 1})
	m.Forget(train)
	known := reflect.ValueOf(m).Elem()
	for i := range known.NumField() {
		name, field := known.Type().Field(i).Name, known.Field(i)
		if field.Kind() != reflect.Map || name == "wrote" {
			continue
		}
		if field.Len() > 0 {
			t.Errorf("%s remembers a job that is gone", name)
		}
		if field.Type().Key() == reflect.TypeFor[place]() {
			t.Errorf("%s is by place: forgetting a job would look at all that is known", name)
		}
	}
}

// TestClaimsAreKnown: who had the claim for which reservation, and from when on that is known.
func TestClaimsAreKnown(t *testing.T) {
	m := NewMemory()
	at := func(evictions int32, claim string) *kueue.Workload {
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
		wl.Status.SchedulingStats = &kueue.SchedulingStats{Evictions: []kueue.WorkloadSchedulingStatsEviction{{Count: evictions}}}
		wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(int64(evictions), 0)}}
		if claim != "" {
			wl.Status.ClusterName = &claim
		}
		return wl
	}
	see := func(wl *kueue.Workload) plan.Past { return m.pastOf(train, []*kueue.Workload{wl})["u"] }
	want := func(when string, got, want plan.Past) {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: known is %v, want %v", when, got, want)
		}
	}
	first := see(at(2, ""))
	want("unclaimed", first, plan.Past{From: 2})
	want("claimed", see(at(2, "w1")), plan.Past{From: 2, By: map[string]string{"2-2": "w1"}})
	want("claimed again", see(at(3, "w2")), plan.Past{From: 2, By: map[string]string{"2-2": "w1", "3-3": "w2"}})
	want("what was handed out", first, plan.Past{From: 2})
	m.Forget(train)
	want("forgotten", see(at(3, "")), plan.Past{From: 3})
}
