package quota_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/quota"
)

// flavor is a flavor's name and its quotas, as "cpu=2 memory=1Gi".
func flavor(name, quotas string) kueue.FlavorQuotas {
	f := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(name)}
	for _, text := range strings.Fields(quotas) {
		resourceName, amount, _ := strings.Cut(text, "=")
		f.Resources = append(f.Resources, kueue.ResourceQuota{Name: corev1.ResourceName(resourceName), NominalQuota: resource.MustParse(amount)})
	}
	return f
}

func group(flavors ...kueue.FlavorQuotas) kueue.ResourceGroup {
	g := kueue.ResourceGroup{Flavors: flavors}
	for _, q := range flavors[0].Resources {
		g.CoveredResources = append(g.CoveredResources, q.Name)
	}
	return g
}

func queue(groups ...kueue.ResourceGroup) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "jobs", Generation: 4}, Spec: kueue.ClusterQueueSpec{ResourceGroups: groups}}
}

func worker(name string, groups ...kueue.ResourceGroup) quota.Worker {
	return quota.Worker{Name: name, Known: true, Queues: []*kueue.ClusterQueue{queue(groups...)}}
}

func was(cq *kueue.ClusterQueue, status metav1.ConditionStatus, why string) *kueue.ClusterQueue {
	cq.Status.Conditions = []metav1.Condition{{Type: kueue.MultiKueueManagerQuotaAutomation, Status: status, Reason: why}}
	return cq
}

func TestDecide(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	one := group(flavor("any", "cpu=0 memory=0"))
	w1 := worker("w1", group(flavor("spot", "cpu=2 memory=4Gi"), flavor("reserved", "cpu=1 memory=1Gi")))
	w2 := worker("w2", group(flavor("big", "memory=10Gi")), group(flavor("fast", "cpu=3")))
	sum := []kueue.ResourceGroup{group(flavor("any", "cpu=6 memory=15Gi"))}
	two := group(flavor("spot", "cpu=9"), flavor("reserved", "cpu=9"))
	away, out, labelled := w2, w2, worker("w2", group(flavor("fast", "cpu=3")))
	away.Known, away.Why = false, "it is out of reach"
	out.Out, out.Known = true, false
	labelled.Flavors = map[kueue.ResourceFlavorReference]map[string]string{"fast": {quota.FlavorLabel: "spot"}}
	limited := flavor("any", "cpu=0 memory=0")
	limited.Resources[0].LendingLimit = new(resource.MustParse("1"))
	wantLimited := flavor("any", "cpu=6 memory=15Gi")
	wantLimited.Resources[0].LendingLimit = new(resource.MustParse("1"))

	for name, c := range map[string]struct {
		request     quota.Request
		groups      []kueue.ResourceGroup
		status      metav1.ConditionStatus
		why, saying string
		forget      bool
	}{
		"nobody asks":                {request: quota.Request{Queue: queue(one), Workers: []quota.Worker{w1}}},
		"nobody asks any more":       {quota.Request{Queue: was(queue(one), yes, "QuotaAutomated"), Workers: []quota.Worker{w1}}, nil, no, "NotRequested", "has not been requested", false},
		"no check any more":          {request: quota.Request{Queue: was(queue(one), yes, "QuotaAutomated")}, forget: true},
		"no config any more":         {quota.Request{Queue: was(queue(one), yes, "QuotaAutomated"), Trouble: "The referenced MultiKueueConfig was not found."}, nil, no, "UnsupportedConfiguration", "not found", false},
		"the sum of all":             {quota.Request{Queue: queue(one), Automated: true, Workers: []quota.Worker{w1, w2}}, sum, yes, "QuotaAutomated", "automatically managed", false},
		"as it is already":           {quota.Request{Queue: was(queue(sum...), no, "NotRequested"), Automated: true, Workers: []quota.Worker{w1, w2}}, nil, yes, "QuotaAutomated", "automatically managed", false},
		"limits stay":                {quota.Request{Queue: queue(group(limited)), Automated: true, Workers: []quota.Worker{w1, w2}}, []kueue.ResourceGroup{group(wantLimited)}, yes, "QuotaAutomated", "", false},
		"no worker":                  {quota.Request{Queue: queue(group(flavor("any", "cpu=5"))), Automated: true}, []kueue.ResourceGroup{group(flavor("any", "cpu=0"))}, yes, "QuotaAutomated", "", false},
		"no flavor":                  {quota.Request{Queue: queue(), Automated: true, Workers: []quota.Worker{w1}}, nil, no, "UnsupportedConfiguration", "has a resource group", false},
		"a resource is missing":      {quota.Request{Queue: queue(group(flavor("any", "cpu=5"))), Automated: true, Workers: []quota.Worker{w1}}, nil, no, "UnsupportedConfiguration", "is missing resources configured on workers: [memory]", false},
		"several flavors, by name":   {quota.Request{Queue: queue(two), Automated: true, Workers: []quota.Worker{worker("w1", group(flavor("reserved", "cpu=1")))}}, []kueue.ResourceGroup{group(flavor("spot", "cpu=0"), flavor("reserved", "cpu=1"))}, yes, "QuotaAutomated", "", false},
		"several flavors, by label":  {quota.Request{Queue: queue(two), Automated: true, Workers: []quota.Worker{labelled}}, []kueue.ResourceGroup{group(flavor("spot", "cpu=3"), flavor("reserved", "cpu=0"))}, yes, "QuotaAutomated", "", false},
		"several flavors, none fits": {quota.Request{Queue: queue(two), Automated: true, Workers: []quota.Worker{worker("w2", group(flavor("fast", "cpu=3")))}}, nil, no, "UnsupportedConfiguration", `Flavor "fast" of worker "w2"`, false},
		"one out":                    {quota.Request{Queue: queue(one), Automated: true, Workers: []quota.Worker{w1, out}}, []kueue.ResourceGroup{group(flavor("any", "cpu=3 memory=5Gi"))}, yes, "QuotaAutomated", "", false},
		"one away, from the start":   {quota.Request{Queue: queue(one), Automated: true, Workers: []quota.Worker{w1, away}}, nil, no, "WaitingForWorkers", `"w2", which cannot be read now: it is out of reach`, false},
		"one away, later":            {request: quota.Request{Queue: was(queue(sum...), yes, "QuotaAutomated"), Automated: true, Workers: []quota.Worker{w1, away}}},
		"edited before it was asked": {quota.Request{Queue: was(queue(one), no, "NotRequested"), Automated: true, Workers: []quota.Worker{w1, w2}, Editor: "kubectl-edit"}, sum, yes, "QuotaAutomated", "", false},
		"edited since":               {quota.Request{Queue: was(queue(one), yes, "QuotaAutomated"), Automated: true, Workers: []quota.Worker{w1, w2}, Editor: "kubectl-edit"}, nil, no, "EditedByOthers", `"kubectl-edit" changed the quota, and it is left as it is; the workers have any: cpu 6, memory 15Gi.`, false},
		"still edited":               {quota.Request{Queue: was(queue(one), no, "EditedByOthers"), Automated: true, Workers: []quota.Worker{w1, w2}, Editor: "kubectl-edit"}, nil, no, "EditedByOthers", "left as it is", false},
		"edited to the same":         {quota.Request{Queue: was(queue(sum...), no, "EditedByOthers"), Automated: true, Workers: []quota.Worker{w1, w2}, Editor: "kubectl-edit"}, nil, yes, "QuotaAutomated", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.request.Dispatched = !c.forget
			got := quota.Decide(c.request)
			g.Expect(got.Forget).To(Equal(c.forget))
			g.Expect(got.Groups).To(BeComparableTo(c.groups))
			if c.why == "" {
				g.Expect(got.Condition).To(BeNil())
				return
			}
			g.Expect(got.Condition).NotTo(BeNil())
			g.Expect(got.Condition.Status).To(Equal(c.status))
			g.Expect(got.Condition.Reason).To(Equal(c.why))
			g.Expect(got.Condition.Message).To(ContainSubstring(c.saying))
			g.Expect(got.Condition.ObservedGeneration).To(BeEquivalentTo(4))
		})
	}
}

// TestDecideProperties: over any workers, what the queue gets is what they have, whatever their order; once it has that,
// nothing is written; and no editor is ever overruled.
func TestDecideProperties(t *testing.T) {
	names := []string{"spot", "reserved"}
	rapid.Check(t, func(t *rapid.T) {
		var workers []quota.Worker
		want := map[string]int64{}
		for i := range rapid.IntRange(0, 5).Draw(t, "workers") {
			name := rapid.SampledFrom(names).Draw(t, "flavor")
			cpu := rapid.Int64Range(0, 1000).Draw(t, "cpu")
			f := flavor(name, "cpu=0")
			f.Resources[0].NominalQuota = *resource.NewQuantity(cpu, resource.DecimalSI)
			w := worker(string(rune('a'+i)), group(f))
			if w.Out = rapid.Bool().Draw(t, "out"); !w.Out {
				want[name] += cpu
			}
			workers = append(workers, w)
		}
		cq := queue(group(flavor("spot", "cpu=1"), flavor("reserved", "cpu=1")))
		r := quota.Request{Queue: cq, Dispatched: true, Automated: true, Workers: workers}
		first := quota.Decide(r)
		seed := rapid.Uint64().Draw(t, "order")
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
		g := NewWithT(t)
		g.Expect(quota.Decide(r)).To(BeComparableTo(first), "in another order")
		if first.Groups != nil {
			cq.Spec.ResourceGroups = first.Groups
		}
		for _, f := range cq.Spec.ResourceGroups[0].Flavors {
			g.Expect(f.Resources[0].NominalQuota.Value()).To(Equal(want[string(f.Name)]), "%s", f.Name)
		}
		cq.Status.Conditions = []metav1.Condition{*first.Condition}
		g.Expect(quota.Decide(r).Groups).To(BeNil(), "a second time")
		cq.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("5000")
		r.Editor = "kubectl"
		g.Expect(quota.Decide(r).Groups).To(BeNil(), "after an edit")
	})
}
