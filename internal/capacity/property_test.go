package capacity_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
)

// worlds draws workers of every shape, also of impossible ones: circles, unknown names, negative amounts.
func worlds(t *rapid.T) *bench {
	b := newBench()
	names := rapid.SampledFrom([]string{"", "a", "b", "c", "d"})
	flavors := []string{"f", "g", "h"}[:rapid.IntRange(1, 3).Draw(t, "flavors")]
	for _, f := range flavors[1:] {
		b.flavor(f, nil)
	}
	resources := []corev1.ResourceName{"cpu", "nvidia.com/gpu"}
	groups := func() (all []kueue.ResourceGroup) {
		for _, r := range resources {
			var quotas []kueue.FlavorQuotas
			for _, f := range flavors {
				quotas = append(quotas, quota(f, amount(t), limit(t), limit(t)))
			}
			all = append(all, group(r, quotas...))
		}
		return all
	}
	b.queues = nil
	for _, name := range []string{"q", "other", "third"} {
		cq := b.queue(name, kueue.CohortReference(names.Draw(t, "cohort")), groups()...)
		cq.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: policies(t), ReclaimWithinCohort: policies(t)}
		if rapid.Bool().Draw(t, "borrow and preempt") {
			cq.Spec.Preemption.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
		}
		cq.Spec.FlavorFungibility = &kueue.FlavorFungibility{
			WhenCanBorrow:  rapid.SampledFrom([]kueue.FlavorFungibilityPolicy{kueue.MayStopSearch, kueue.TryNextFlavor}).Draw(t, "when can borrow"),
			WhenCanPreempt: rapid.SampledFrom([]kueue.FlavorFungibilityPolicy{kueue.MayStopSearch, kueue.TryNextFlavor}).Draw(t, "when can preempt"),
		}
		for _, f := range flavors {
			b.uses(name, f, "cpu", amount(t))
			b.runs(name, rapid.Int32Range(-1, 1).Draw(t, "priority"), f, rapid.Int64Range(-1, 9000).Draw(t, "holds"))
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, "exists") {
			b.cohort(name, names.Draw(t, "parent"), groups()...)
		}
	}
	b.request.PodSets = nil
	for range rapid.IntRange(0, 2).Draw(t, "pod sets") {
		ps := pods(rapid.Int32Range(-1, 4).Draw(t, "count"), rapid.SampledFrom(resources).Draw(t, "asks"), amount(t))
		if rapid.Bool().Draw(t, "partial") {
			ps.MinCount = new(rapid.Int32Range(-1, 5).Draw(t, "min"))
		}
		b.request.PodSets = append(b.request.PodSets, ps)
	}
	b.offered = slices.Repeat([]capacity.Request{b.request}, rapid.IntRange(0, 2).Draw(t, "offered"))
	return b
}

func amount(t *rapid.T) string {
	return rapid.SampledFrom([]string{"0", "1", "2", "3", "5", "8", "12", "-1", "500m", "9E", "9000P"}).Draw(t, "amount")
}

func limit(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "0", "1", "4"}).Draw(t, "limit")
}

func policies(t *rapid.T) kueue.PreemptionPolicy {
	return rapid.SampledFrom([]kueue.PreemptionPolicy{"", kueue.PreemptionPolicyNever, kueue.PreemptionPolicyAny, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyLowerOrNewerEqualPriority}).Draw(t, "policy")
}

// TestAnyWorldHasAnAnswer: whatever a worker says, there is one, with a reason and a share that is one.
func TestAnyWorldHasAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := worlds(t).fit()
		if got.Class < capacity.FitsNominal || got.Class > capacity.NeverFits || got.Class == capacity.Unknown || got.Why == "" || got.Free < 0 || got.Free > 1 || got.Wait < 0 {
			t.Fatalf("%+v", got)
		}
	})
}

// TestTheOrderOfListsDoesNotMatter: caches list in any order.
func TestTheOrderOfListsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := worlds(t)
		before := b.fit()
		slices.Reverse(b.queues)
		slices.Reverse(b.cohorts)
		slices.Reverse(b.flavors)
		if after := b.fit(); after != before {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// TestOtherGroupsDoNotMatter: flavors of a resource that is not asked for change nothing, in whatever order.
func TestOtherGroupsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := worlds(t)
		for i := range b.request.PodSets {
			b.request.PodSets[i].Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(amount(t))}
		}
		b.offered = nil
		before := b.fit()
		for _, cq := range b.queues {
			slices.Reverse(cq.Spec.ResourceGroups[1].Flavors)
		}
		if after := b.fit(); after != before {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// TestMoreQuotaIsNeverWorse, where the queue has one flavor: with several, quota in the first one may make Kueue preempt
// there instead of going on to the next.
func TestMoreQuotaIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := worlds(t)
		for _, cq := range b.queues {
			for i := range cq.Spec.ResourceGroups {
				cq.Spec.ResourceGroups[i].Flavors = cq.Spec.ResourceGroups[i].Flavors[:1]
			}
		}
		for i := range b.request.PodSets {
			b.request.PodSets[i].MinCount = nil // all pods on borrowed quota come before fewer
		}
		b.known, b.offered = nil, nil // who may be evicted depends on who borrows, and so on the quota
		before := b.fit()
		b.queues[0].Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.Add(resource.MustParse("3"))
		if after := b.fit(); after.Class > before.Class {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}
