package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/test/scenario/cluster"
	"ferry.dev/ferry/test/scenario/kueuemodel"
	"ferry.dev/ferry/test/scenario/world"
)

// patience is how long settle waits for what Ferry itself waits for.
const patience = 10 * time.Second

// settle lets everything happen that follows by itself, and tells which rules decided, and what users were told.
func (s *session) settle(a []string) {
	wait := patience
	if len(a) > 0 {
		wait = duration(a[0])
	}
	if !s.world.Settle(false, wait) {
		s.printf("it comes to no rest")
	}
	refs := slices.SortedFunc(maps.Keys(s.world.Rules), func(a, b kinds.Ref) int { return strings.Compare(a.Name, b.Name) })
	for _, ref := range refs {
		rules := s.world.Rules[ref]
		if news := rules[s.seen[ref.Name]:]; len(news) > 0 {
			s.printf("%s: %s", ref.Name, strings.Join(news, " > "))
		}
		s.seen[ref.Name] = len(rules)
	}
	for _, event := range s.world.TakeEvents() {
		s.printf("event: %s", event)
	}
}

// show prints what a user could see of jobs, and what Ferry makes of it.
func (s *session) show(names []string) {
	for _, name := range names {
		s.printf("%s: %s", name, s.job(name))
		for _, part := range s.parts(name) {
			s.printf("  %s: %s", part, s.dispatch(part))
		}
		if message := s.message(name); message != "" {
			s.printf("  %s", message)
		}
		for _, worker := range s.world.Names() {
			s.printf("  %s: %s", worker, s.on(worker, name))
		}
	}
}

// job tells all of a job that has one Workload; of one with several, those are told of by themselves.
func (s *session) job(name string) string {
	job := s.world.Manager.Job(world.Namespace, name)
	if job != nil && job.GetKind() == cluster.Set.Kind {
		return fmt.Sprintf("rule=%s set=%s", s.world.Rule(name), s.set(s.world.Manager, job))
	}
	return fmt.Sprintf("%s rule=%s job=%s", s.dispatch(name), s.world.Rule(name), managerJob(job))
}

// parts names the Workloads of a set by their replicas.
func (s *session) parts(name string) []string {
	var parts []string
	for _, wl := range s.world.Workloads(name) {
		if replica := kinds.ReplicaOf(wl); replica >= 0 {
			parts = append(parts, fmt.Sprintf("%s/%d", name, replica))
		}
	}
	return parts
}

// set tells how many of a set's pods are ready, by their images.
func (s *session) set(c *cluster.Cluster, set *unstructured.Unstructured) string {
	ready, images := 0, map[string]bool{}
	for _, pod := range world.PodsOf(c, set) {
		if kueuemodel.Ready(pod) {
			ready++
		}
		images[kueuemodel.Image(pod, "spec")] = true
	}
	return fmt.Sprintf("ready(%d/%d %s)", ready, kueuemodel.Replicas(set), strings.Join(slices.Sorted(maps.Keys(images)), ","))
}

func (s *session) dispatch(name string) string {
	check, cluster, nominated := "-", "-", ""
	if wl := s.world.AnyWorkload(name); wl != nil {
		if c := s.check(wl); c != nil {
			check = string(c.State)
		}
		if wl.Status.ClusterName != nil {
			cluster = *wl.Status.ClusterName
		}
		if n := wl.Status.NominatedClusterNames; len(n) > 0 {
			nominated = " nominated=" + strings.Join(n, ",")
		}
	}
	return fmt.Sprintf("check=%s cluster=%s%s", check, cluster, nominated)
}

func (s *session) check(wl *kueue.Workload) *kueue.AdmissionCheckState {
	for i := range wl.Status.AdmissionChecks {
		if wl.Status.AdmissionChecks[i].Name == world.Check {
			return &wl.Status.AdmissionChecks[i]
		}
	}
	return nil
}

func (s *session) message(name string) string {
	wl := s.world.AnyWorkload(name)
	if wl == nil {
		return ""
	}
	if c := s.check(wl); c != nil {
		return c.Message
	}
	return ""
}

func managerJob(job *unstructured.Unstructured) string {
	if job == nil {
		return "-"
	}
	return state(job)
}

func state(job *unstructured.Unstructured) string {
	ended, success := kueuemodel.Ended(job)
	active, _, _ := unstructured.NestedInt64(job.Object, "status", "active")
	switch {
	case job.GetKind() == cluster.Pod.Kind:
		return podState(job)
	case ended && success:
		return "complete"
	case ended:
		return "failed"
	case active > 0 && kueuemodel.Suspended(job):
		return "stopping"
	case active > 0:
		return fmt.Sprintf("running(%d)", active)
	case kueuemodel.Suspended(job):
		return "suspended"
	default:
		return "started"
	}
}

func podState(pod *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	switch {
	case phase != "":
		return strings.ToLower(phase)
	case kueuemodel.Suspended(pod):
		return "gated"
	default:
		return "pending"
	}
}

// on tells what there is of a job on a worker, like "workload(admitted) job(running(1))".
func (s *session) on(worker, name string) string {
	var parts []string
	if s.world.Worker(worker).Cut {
		parts = append(parts, "lost:")
	}
	for _, wl := range s.world.Copies(worker, name) {
		word := "workload"
		if replica := kinds.ReplicaOf(wl); replica >= 0 {
			word = fmt.Sprintf("workload/%d", replica)
		}
		parts = append(parts, word+"("+phase(wl)+gate(wl)+")")
	}
	if job := s.world.JobOn(worker, name); job != nil {
		switch {
		case !kinds.Ours(job) || job.GetLabels()[kueue.MultiKueueOriginLabel] != world.Origin:
			parts = append(parts, "foreign-job")
		case job.GetKind() == cluster.Set.Kind:
			parts = append(parts, "set("+s.set(s.world.Worker(worker).Cluster, job)+")")
		default:
			parts = append(parts, "job("+state(job)+")")
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, " ")
}

// gate tells whether a copy that has a preemption gate may preempt.
func gate(wl *kueue.Workload) string {
	switch {
	case len(wl.Spec.PreemptionGates) == 0:
		return ""
	case kueuemodel.GateOpenedAt(wl) != nil:
		return ", may preempt"
	default:
		return ", gated"
	}
}

func phase(wl *kueue.Workload) string {
	for _, c := range []struct{ condition, word string }{
		{kueue.WorkloadFinished, "finished"}, {kueue.WorkloadEvicted, "evicted"},
		{kueue.WorkloadAdmitted, "admitted"}, {kueue.WorkloadQuotaReserved, "reserved"},
	} {
		if meta.IsStatusConditionTrue(wl.Status.Conditions, c.condition) {
			return c.word + priority(wl)
		}
	}
	return "waiting" + priority(wl)
}

func priority(wl *kueue.Workload) string {
	if wl.Spec.Priority == nil || *wl.Spec.Priority == 0 {
		return ""
	}
	return fmt.Sprintf(",priority=%d", *wl.Spec.Priority)
}
