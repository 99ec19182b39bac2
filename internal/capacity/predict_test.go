package capacity_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a worker in the making: one queue "q" with one flavor "f" of 8 CPUs, and what an option changes.
type bench struct {
	queues  []*kueue.ClusterQueue
	cohorts []*kueue.Cohort
	flavors []*kueue.ResourceFlavor
	local   *kueue.LocalQueue
	request capacity.Request
	known   []capacity.Holder
	offered []capacity.Request
}

func newBench() *bench {
	b := &bench{local: &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lq"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "q"}}}
	b.flavor("f", nil)
	b.queue("q", "", group("cpu", quota("f", "8")))
	b.request = capacity.Request{Queue: b.local, Created: epoch, PodSets: []kueue.PodSet{pods(1, "cpu", "2")}}
	return b
}

func (b *bench) fit() capacity.Fit {
	return capacity.NewWorker(b.queues, b.cohorts, b.flavors).Predict(b.request, b.known, b.offered)
}

func (b *bench) flavor(name string, labels map[string]string, taints ...corev1.Taint) {
	b.flavors = append(b.flavors, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ResourceFlavorSpec{NodeLabels: labels, NodeTaints: taints}})
}

func (b *bench) queue(name string, cohort kueue.CohortReference, groups ...kueue.ResourceGroup) *kueue.ClusterQueue {
	cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.ClusterQueueSpec{
		CohortName: cohort, NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: groups, Preemption: &kueue.ClusterQueuePreemption{},
	}}
	b.queues = append(b.queues, cq)
	return cq
}

func (b *bench) cohort(name, parent string, groups ...kueue.ResourceGroup) {
	b.cohorts = append(b.cohorts, &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent), ResourceGroups: groups}})
}

func (b *bench) uses(queue, flavor string, of corev1.ResourceName, amount string) {
	for _, cq := range b.queues {
		if cq.Name == queue {
			cq.Status.FlavorsReservation = append(cq.Status.FlavorsReservation, kueue.FlavorUsage{Name: kueue.ResourceFlavorReference(flavor), Resources: []kueue.ResourceUsage{{Name: of, Total: resource.MustParse(amount)}}})
		}
	}
}

func (b *bench) runs(queue string, priority int32, flavor string, milli int64) {
	b.known = append(b.known, capacity.Holder{
		Queue: kueue.ClusterQueueReference(queue), Priority: priority, Created: epoch, Visible: true,
		Holds: []capacity.Held{{Flavor: kueue.ResourceFlavorReference(flavor), Resource: "cpu", Amount: milli}},
	})
}

func group(of corev1.ResourceName, quotas ...kueue.FlavorQuotas) kueue.ResourceGroup {
	g := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{of}}
	for _, q := range quotas {
		q.Resources[0].Name = of
		g.Flavors = append(g.Flavors, q)
	}
	return g
}

// quota is nominal, and after it, if given, the limits of borrowing and of lending.
func quota(flavor, nominal string, limits ...string) kueue.FlavorQuotas {
	q := kueue.ResourceQuota{NominalQuota: resource.MustParse(nominal)}
	for i, limit := range limits {
		switch {
		case limit == "":
		case i == 0:
			q.BorrowingLimit = new(resource.MustParse(limit))
		default:
			q.LendingLimit = new(resource.MustParse(limit))
		}
	}
	return kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(flavor), Resources: []kueue.ResourceQuota{q}}
}

func pods(count int32, of corev1.ResourceName, each string) kueue.PodSet {
	return kueue.PodSet{Name: "main", Count: count, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container(of, each)}}}}
}

func container(of corev1.ResourceName, amount string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{of: resource.MustParse(amount)}}}
}

func ask(count int32, each string) func(*bench) {
	return func(b *bench) { b.request.PodSets = []kueue.PodSet{pods(count, "cpu", each)} }
}

func twoFlavors(b *bench) {
	b.flavor("g", map[string]string{"pool": "g"})
	b.queues[0].Spec.ResourceGroups = []kueue.ResourceGroup{group("cpu", quota("f", "2"), quota("g", "8"))}
}

// share puts q into a cohort with another queue of 8 CPUs.
func share(limits ...string) func(*bench) {
	return func(b *bench) {
		b.queues[0].Spec.CohortName = "c"
		b.queue("other", "c", group("cpu", quota("f", "8", limits...)))
	}
}

func preempts(within, reclaim kueue.PreemptionPolicy) func(*bench) {
	return func(b *bench) {
		b.queues[0].Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: within, ReclaimWithinCohort: reclaim}
	}
}

func busy(queue, cpu string) func(*bench) { return func(b *bench) { b.uses(queue, "f", "cpu", cpu) } }

func running(queue string, priority int32, milli int64) func(*bench) {
	return func(b *bench) { b.runs(queue, priority, "f", milli) }
}

func TestPredict(t *testing.T) {
	never, lower, any := kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny
	hold := kueue.Hold
	for name, c := range map[string]struct {
		with []func(*bench)
		want capacity.Class
		why  string
	}{
		"free":                       {nil, capacity.FitsNominal, "8 cpu free of 8"},
		"just fits":                  {[]func(*bench){ask(4, "2")}, capacity.FitsNominal, ""},
		"a pod too many, ever":       {[]func(*bench){ask(5, "2")}, capacity.NeverFits, "its queue can never have more than 8 cpu"},
		"busy":                       {[]func(*bench){busy("q", "7")}, capacity.FitsLater, "1 cpu free of 8"},
		"overused":                   {[]func(*bench){busy("q", "9")}, capacity.FitsLater, "0 cpu free of 8"},
		"no flavor has the resource": {[]func(*bench){func(b *bench) { b.request.PodSets = []kueue.PodSet{pods(1, "nvidia.com/gpu", "1")} }}, capacity.NeverFits, "no flavor of its queue has nvidia.com/gpu"},
		"a resource that no manager counts is excluded": {[]func(*bench){func(b *bench) {
			b.request.PodSets = []kueue.PodSet{pods(1, "example.com/net", "1")}
			b.request.Counted = map[corev1.ResourceName]bool{"cpu": true}
		}}, capacity.FitsNominal, ""},
		"none of what nobody has": {[]func(*bench){func(b *bench) { b.request.PodSets = []kueue.PodSet{pods(1, "nvidia.com/gpu", "0")} }}, capacity.FitsNominal, ""},
		"no LocalQueue":           {[]func(*bench){func(b *bench) { b.request.Queue = nil }}, capacity.NeverFits, "no such LocalQueue"},
		"no ClusterQueue":         {[]func(*bench){func(b *bench) { b.local.Spec.ClusterQueue = "gone" }}, capacity.NeverFits, "no ClusterQueue gone"},
		"stopped":                 {[]func(*bench){func(b *bench) { b.queues[0].Spec.StopPolicy = &hold }}, capacity.FitsLater, "stopped (Hold)"},
		"LocalQueue stopped":      {[]func(*bench){func(b *bench) { b.local.Spec.StopPolicy = &hold }}, capacity.FitsLater, "LocalQueue is stopped (Hold)"},
		"inactive": {[]func(*bench){func(b *bench) {
			b.queues[0].Status.Conditions = []metav1.Condition{{Type: kueue.ClusterQueueActive, Status: metav1.ConditionFalse, Message: "no flavor"}}
		}}, capacity.FitsLater, "not active: no flavor"},
		"stopped, and never fits": {[]func(*bench){ask(9, "1"), func(b *bench) { b.queues[0].Spec.StopPolicy = &hold }}, capacity.NeverFits, ""},
		"no namespace":            {[]func(*bench){func(b *bench) { b.queues[0].Spec.NamespaceSelector = nil }}, capacity.NeverFits, "takes jobs of no namespace"},
		"another namespace": {[]func(*bench){func(b *bench) {
			b.queues[0].Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "x"}}
		}}, capacity.NeverFits, "does not take jobs of namespace ns"},
		"labels that nobody knows": {[]func(*bench){func(b *bench) {
			b.queues[0].Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
		}}, capacity.FitsNominal, ""},
		"labels that do not match": {[]func(*bench){func(b *bench) {
			b.queues[0].Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
			b.request.NamespaceLabels = map[string]string{"team": "y"}
		}}, capacity.NeverFits, ""},
		"a flavor that does not exist": {[]func(*bench){func(b *bench) { b.flavors = nil }}, capacity.NeverFits, "there is no flavor f"},

		"borrows": {[]func(*bench){share(), ask(1, "10")}, capacity.FitsBorrowing, "borrowed from the cohort"},
		"borrows no more than its limit": {[]func(*bench){share(), func(b *bench) {
			b.queues[0].Spec.ResourceGroups[0].Flavors[0] = quota("f", "8", "1")
			b.queues[0].Spec.ResourceGroups[0].Flavors[0].Resources[0].Name = "cpu"
		}, ask(1, "10")}, capacity.NeverFits, "more than 9 cpu"},
		"others lend no more than theirs": {[]func(*bench){share("", "1"), ask(1, "10")}, capacity.NeverFits, "more than 9 cpu"},
		"others use what they would lend": {[]func(*bench){share(), busy("other", "7"), ask(1, "10")}, capacity.FitsLater, "9 cpu free of 16"},
		"a cohort's own quota, two levels up": {[]func(*bench){func(b *bench) {
			b.queues[0].Spec.CohortName = "low"
			b.cohort("low", "high")
			b.cohort("high", "", group("cpu", quota("f", "4")))
		}, ask(1, "12")}, capacity.FitsBorrowing, ""},
		"cohorts in a circle": {[]func(*bench){func(b *bench) {
			b.queues[0].Spec.CohortName = "a"
			b.cohort("a", "b")
			b.cohort("b", "a")
		}}, capacity.FitsLater, "circle"},

		"the next flavor":                     {[]func(*bench){twoFlavors, ask(1, "4")}, capacity.FitsNominal, "8 cpu free of 8"},
		"a selector excludes the next":        {[]func(*bench){twoFlavors, ask(1, "4"), func(b *bench) { b.request.PodSets[0].Template.Spec.NodeSelector = map[string]string{"pool": "h"} }}, capacity.NeverFits, ""},
		"a selector on what no flavor labels": {[]func(*bench){func(b *bench) { b.request.PodSets[0].Template.Spec.NodeSelector = map[string]string{"zone": "z"} }}, capacity.FitsNominal, ""},
		"a taint": {[]func(*bench){func(b *bench) {
			b.flavors[0].Spec.NodeTaints = []corev1.Taint{{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		}}, capacity.NeverFits, "do not tolerate the taint spot=true:NoSchedule"},
		"a taint that is tolerated": {[]func(*bench){func(b *bench) {
			b.flavors[0].Spec.NodeTaints = []corev1.Taint{{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
			b.request.PodSets[0].Template.Spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
		}}, capacity.FitsNominal, ""},
		"a taint that the flavor itself bears": {[]func(*bench){func(b *bench) {
			b.flavors[0].Spec.NodeTaints = []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}
			b.flavors[0].Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}}, capacity.FitsNominal, ""},

		"preempts a lower one":                 {[]func(*bench){busy("q", "8"), running("q", -1, 8000), preempts(lower, never)}, capacity.FitsPreempting, "by preempting"},
		"an equal one stays":                   {[]func(*bench){busy("q", "8"), running("q", 0, 8000), preempts(lower, never)}, capacity.FitsLater, ""},
		"nobody knows who runs there":          {[]func(*bench){busy("q", "8"), preempts(lower, never)}, capacity.FitsLater, ""},
		"reclaims what another borrows":        {[]func(*bench){share(), busy("other", "16"), preempts(never, any)}, capacity.FitsPreempting, ""},
		"reclaims from a lower one only":       {[]func(*bench){share(), busy("other", "16"), running("other", 5, 16000), preempts(never, lower)}, capacity.FitsLater, ""},
		"what others use of theirs, they keep": {[]func(*bench){share(), busy("other", "8"), busy("q", "8"), preempts(never, any)}, capacity.FitsLater, ""},

		"with fewer pods":             {[]func(*bench){busy("q", "4"), ask(3, "2"), func(b *bench) { b.request.PodSets[0].MinCount = new(int32(1)) }}, capacity.FitsNominal, "with 1 pods fewer"},
		"not with as few as that":     {[]func(*bench){busy("q", "7"), ask(3, "2"), func(b *bench) { b.request.PodSets[0].MinCount = new(int32(1)) }}, capacity.FitsLater, ""},
		"what is done counts no more": {[]func(*bench){busy("q", "4"), ask(3, "2"), func(b *bench) { b.request.Reclaimable = []kueue.ReclaimablePod{{Name: "main", Count: 1}} }}, capacity.FitsNominal, ""},
		"init containers": {[]func(*bench){func(b *bench) {
			b.request.PodSets[0].Template.Spec.InitContainers = []corev1.Container{container("cpu", "9")}
		}}, capacity.NeverFits, ""},
		"sidecars": {[]func(*bench){func(b *bench) {
			sidecar := container("cpu", "7")
			sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			b.request.PodSets[0].Template.Spec.InitContainers = []corev1.Container{sidecar}
		}}, capacity.NeverFits, ""},
		"overhead": {[]func(*bench){func(b *bench) {
			b.request.PodSets[0].Template.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("7")}
		}}, capacity.NeverFits, ""},
		"pods are counted": {[]func(*bench){func(b *bench) {
			b.queues[0].Spec.ResourceGroups = append(b.queues[0].Spec.ResourceGroups, group("pods", quota("f", "1")))
		}, ask(2, "1")}, capacity.NeverFits, "more than 1 pods"},
		"sets add up":         {[]func(*bench){func(b *bench) { b.request.PodSets = []kueue.PodSet{pods(1, "cpu", "5"), pods(1, "cpu", "5")} }}, capacity.NeverFits, ""},
		"sets of two flavors": {[]func(*bench){twoFlavors, func(b *bench) { b.request.PodSets = []kueue.PodSet{pods(1, "cpu", "2"), pods(1, "cpu", "8")} }}, capacity.FitsNominal, ""},

		"offered before it": {[]func(*bench){ask(1, "5"), func(b *bench) {
			b.offered = []capacity.Request{{Queue: b.local, PodSets: []kueue.PodSet{pods(1, "cpu", "4")}}}
		}}, capacity.FitsLater, "4 cpu free of 8"},
		"offered, but less important": {[]func(*bench){ask(1, "5"), func(b *bench) {
			b.offered = []capacity.Request{{Queue: b.local, Priority: -1, PodSets: []kueue.PodSet{pods(1, "cpu", "4")}}}
		}}, capacity.FitsNominal, ""},
		"has quota that is not seen yet": {[]func(*bench){ask(1, "5"), running("q", 0, 4000), func(b *bench) { b.known[0].Visible = false }}, capacity.FitsLater, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			for _, with := range c.with {
				with(b)
			}
			got := b.fit()
			if got.Class != c.want || !strings.Contains(got.Why, c.why) || got.Why == "" {
				t.Errorf("got %+v, want class %d and a reason with %q", got, c.want, c.why)
			}
		})
	}
}
