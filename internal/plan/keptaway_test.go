package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// flavors is what Kueue assigns to the one pod set.
func flavors(names ...string) with {
	return manager(func(wl *kueue.Workload) {
		set := kueue.PodSetAssignment{Name: "main"}
		for _, name := range names {
			set.Flavors = map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": kueue.ResourceFlavorReference(name)}
		}
		wl.Status.Admission.PodSetAssignments = []kueue.PodSetAssignment{set}
	})
}

// uncheckedWorkload: Kueue dropped the check and admitted.
func uncheckedWorkload(s *plan.Snapshot) {
	s.Check = ""
	for _, wl := range s.Workloads {
		wl.Status.AdmissionChecks = nil
		setCondition(wl, kueue.WorkloadAdmitted, true, "Admitted", time.Minute)
	}
}

// left makes the job one of a kind that is left to MultiKueue.
func left(k *kinds.Kind) with {
	return func(s *plan.Snapshot) {
		of(*k)(s)
		if len(k.ManagedBy) > 0 {
			_ = unstructured.SetNestedField(s.Jobs[0].Object, k.ManagedByValue(), k.ManagedBy...)
		}
	}
}

// gated are pods of a set that Ferry sees, which has the gate then.
func gated(s *plan.Snapshot) {
	if s.Kind.Pods {
		s.Pods = []*unstructured.Unstructured{newJob()}
	}
}

func told(message string) with { return func(s *plan.Snapshot) { s.Told = append(s.Told, message) } }

func reservedAgo(d time.Duration) with {
	return manager(func(wl *kueue.Workload) { setCondition(wl, kueue.WorkloadQuotaReserved, true, "QuotaReserved", d) })
}

// TestNoJobIsKeptAwayInSilence: of every kind, a job that nothing runs on the manager, and that Kueue does not send to
// us, has its user told why, once, and no worker is asked.
func TestNoJobIsKeptAwayInSilence(t *testing.T) {
	for _, k := range kinds.NewTable(kinds.Frameworks(), custom).Rows() {
		var asked []string
		warned := func(name, want string, s plan.Snapshot) {
			t.Helper()
			p := plan.Decide(s)
			i := slices.IndexFunc(p.Manager, func(a plan.Action) bool { _, is := a.(plan.Warn); return is })
			if p.Rule != "KeptAway" || i < 0 || len(p.Workers) > 0 {
				t.Errorf("%s, %s: %s", k.Name(), name, show(p))
				return
			}
			message := p.Manager[i].(plan.Warn).Message
			if !strings.Contains(message, want) {
				t.Errorf("%s, %s: %q", k.Name(), name, message)
			}
			told(message)(&s)
			if p := plan.Decide(s); p.Rule != "KeptAway" || len(p.Manager) > 0 {
				t.Errorf("%s, %s: says it again: %s", k.Name(), name, show(p))
			}
			asked = append(asked, name)
		}
		warned("requests nothing", `no resource that ClusterQueue "cq"`, snap(left(k), gated, flavors(), uncheckedWorkload))
		warned("flavor without our check", `spot of ClusterQueue "cq"`, snap(left(k), gated, flavors("spot"), uncheckedWorkload))
		if len(k.ManagedBy) > 0 {
			warned("no Workload", "integrations.frameworks", snap(left(k), noWorkload))
		}
		for name, c := range map[string]struct {
			when plan.Snapshot
			want string
		}{
			"the check is about to go": {snap(left(k), gated, flavors(), reservedAgo(time.Second), nominated("w1"), offered("w1")), "KeptAway | w1: delete Workload wl | again in 9s"},
			"the check stays":          {snap(left(k), gated, flavors(), reservedAgo(time.Minute)), "Nominate | " + nominateAll},
			"no Workload yet": {snap(left(k), noWorkload, managerJob(func(job *unstructured.Unstructured) {
				job.SetCreationTimestamp(metav1.NewTime(now.Add(-50 * time.Second)))
			})), waitsBy(k)},
			"it ran": {snap(left(k), gated, claimedBy("w1"), flavors(), uncheckedWorkload), "NotOurs"},
		} {
			if got := show(plan.Decide(c.when)); got != c.want {
				t.Errorf("%s, %s: %s\nwant %s", k.Name(), name, got, c.want)
			}
		}
		if len(asked) < 2 {
			t.Errorf("%s: only %v", k.Name(), asked)
		}
	}
}

func waitsBy(k *kinds.Kind) string {
	if len(k.ManagedBy) > 0 {
		return "KeptAway | again in 10s"
	}
	return "NotOurs"
}
