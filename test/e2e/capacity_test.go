package e2e_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
)

var (
	capacityPairs = flag.Int("capacity-pairs", 160, "how many predictions are compared with Kueue")
	capacitySeed  = flag.Uint64("capacity-seed", 1, "which random queues and Workloads they are made for")
)

const (
	capacityWorker = "w1"
	capacityWorlds = 20
	// atLeastAgreed is the share of the predictions that has to be right: what is approximated is in docs/placement.md.
	atLeastAgreed = 0.97
)

// TestPredictionsAgreeWithKueue makes random cohorts of queues on a worker, and offers one random Workload after the
// other to them: what Kueue does is compared with what was predicted.
func TestPredictionsAgreeWithKueue(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	s.putOn(capacityWorker, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	b := &kueueBench{site: s, random: rand.New(rand.NewPCG(*capacitySeed, 0))}
	b.makeFlavors()
	for i := range capacityWorlds {
		b.worlds = append(b.worlds, b.makeWorld(i))
	}
	b.awaitQueues()
	began := time.Now()
	for b.compared < *capacityPairs {
		b.round()
	}
	share := float64(b.compared-len(b.wrong)) / float64(b.compared)
	t.Logf("%d of %d predictions agreed (%.1f %%), seed %d, in %s; by class: %v", b.compared-len(b.wrong), b.compared, 100*share, *capacitySeed, time.Since(began).Round(time.Second), b.classes)
	for _, wrong := range b.wrong {
		t.Log(wrong)
	}
	s.Expect(share).To(BeNumerically(">=", atLeastAgreed), "share of predictions that agree with Kueue")
}

// kueueBench is one worker's Kueue with many small worlds of queues that have nothing to do with each other.
type kueueBench struct {
	*site
	random   *rand.Rand
	flavors  []*kueue.ResourceFlavor
	worlds   []*queueWorld
	made     int
	compared int
	classes  map[capacity.Class]int
	wrong    []string
}

type queueWorld struct {
	cohorts []*kueue.Cohort
	queues  []*kueue.ClusterQueue
	locals  []*kueue.LocalQueue
	running []*kueue.Workload
	// probe is the Workload of this round, and predicted what was said of it.
	probe     *kueue.Workload
	predicted capacity.Fit
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (b *kueueBench) makeFlavors() {
	for i, spec := range []kueue.ResourceFlavorSpec{
		{},
		{NodeLabels: map[string]string{"pool": "labelled"}},
		{NodeTaints: []corev1.Taint{{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
		{},
	} {
		f := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-f%d", b.namespace, i)}, Spec: spec}
		b.putOn(capacityWorker, f)
		b.flavors = append(b.flavors, f)
	}
}

func (b *kueueBench) makeWorld(i int) *queueWorld {
	name := fmt.Sprintf("%s-%d", b.namespace, i)
	w := &queueWorld{}
	low, high := name+"-low", name+"-high"
	for _, c := range []*kueue.Cohort{
		{ObjectMeta: metav1.ObjectMeta{Name: high}},
		{ObjectMeta: metav1.ObjectMeta{Name: low}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(high)}},
	} {
		if b.random.IntN(2) == 0 {
			c.Spec.ResourceGroups = b.groups(c.Spec.ParentName != "")
		}
		b.putOn(capacityWorker, c)
		w.cohorts = append(w.cohorts, c)
	}
	for q := range 3 {
		cq := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-q%d", name, q)}}
		cq.Spec.CohortName = kueue.CohortReference(oneOf(b.random, "", low, low, high))
		cq.Spec.NamespaceSelector = &metav1.LabelSelector{}
		cq.Spec.ResourceGroups = b.groups(cq.Spec.CohortName != "")
		cq.Spec.FlavorFungibility = &kueue.FlavorFungibility{
			WhenCanBorrow:  oneOf(b.random, kueue.MayStopSearch, kueue.TryNextFlavor),
			WhenCanPreempt: oneOf(b.random, kueue.MayStopSearch, kueue.TryNextFlavor),
		}
		cq.Spec.Preemption = &kueue.ClusterQueuePreemption{
			WithinClusterQueue:  oneOf(b.random, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority),
			ReclaimWithinCohort: oneOf(b.random, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny),
		}
		if cq.Spec.Preemption.ReclaimWithinCohort != kueue.PreemptionPolicyNever && b.random.IntN(3) == 0 {
			cq.Spec.Preemption.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
		}
		local := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: cq.Name}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(cq.Name)}}
		b.putOn(capacityWorker, cq)
		b.putOn(capacityWorker, local)
		w.queues, w.locals = append(w.queues, cq), append(w.locals, local)
	}
	return w
}

// groups are CPU and memory in one to three flavors, and perhaps GPUs in one of their own.
func (b *kueueBench) groups(inCohort bool) []kueue.ResourceGroup {
	first := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}}
	for _, i := range b.random.Perm(3)[:1+b.random.IntN(3)] {
		first.Flavors = append(first.Flavors, b.quotas(i, inCohort, first.CoveredResources...))
	}
	if b.random.IntN(2) == 0 {
		return []kueue.ResourceGroup{first}
	}
	gpu := kueue.ResourceGroup{CoveredResources: []corev1.ResourceName{"example.com/gpu"}}
	gpu.Flavors = append(gpu.Flavors, b.quotas(3, inCohort, gpu.CoveredResources...))
	return []kueue.ResourceGroup{first, gpu}
}

func (b *kueueBench) quotas(flavor int, inCohort bool, of ...corev1.ResourceName) kueue.FlavorQuotas {
	f := kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(b.flavors[flavor].Name)}
	for _, name := range of {
		nominal := b.random.Int64N(9)
		q := kueue.ResourceQuota{Name: name, NominalQuota: *resource.NewQuantity(nominal, resource.DecimalSI)}
		if inCohort && b.random.IntN(3) == 0 {
			q.BorrowingLimit = resource.NewQuantity(b.random.Int64N(6), resource.DecimalSI)
		}
		if inCohort && b.random.IntN(3) == 0 {
			q.LendingLimit = resource.NewQuantity(b.random.Int64N(nominal+1), resource.DecimalSI)
		}
		f.Resources = append(f.Resources, q)
	}
	return f
}

// awaitQueues waits until Kueue knows them all.
func (b *kueueBench) awaitQueues() {
	b.t.Helper()
	b.Eventually(func(g Gomega) {
		all := &kueue.ClusterQueueList{}
		g.Expect(on(capacityWorker).List(b.ctx, all)).To(Succeed())
		active := 0
		for i := range all.Items {
			if strings.HasPrefix(all.Items[i].Name, b.namespace+"-") && meta.IsStatusConditionTrue(all.Items[i].Status.Conditions, kueue.ClusterQueueActive) {
				active++
			}
		}
		g.Expect(active).To(Equal(3 * capacityWorlds))
	}).Should(Succeed())
}

// round offers one Workload to each world, and lets each come to rest.
func (b *kueueBench) round() {
	b.t.Helper()
	for _, w := range b.worlds {
		w.probe = b.workload(w)
		b.predict(w)
		b.Expect(on(capacityWorker).Create(b.ctx, w.probe)).To(Succeed())
	}
	var seen map[string]*kueue.Workload
	b.Eventually(func(g Gomega) {
		seen = b.workloads(g)
		for _, w := range b.worlds {
			g.Expect(w.outcome(seen)).NotTo(Equal(capacity.Unknown), "%s has no answer yet", w.probe.Name)
		}
	}).WithPolling(200 * time.Millisecond).Should(Succeed())
	for _, w := range b.worlds {
		b.compare(w, seen)
		b.tidy(w, seen)
	}
}

func (b *kueueBench) workloads(g Gomega) map[string]*kueue.Workload {
	all := &kueue.WorkloadList{}
	g.Expect(on(capacityWorker).List(b.ctx, all, client.InNamespace(b.namespace))).To(Succeed())
	seen := map[string]*kueue.Workload{}
	for i := range all.Items {
		seen[all.Items[i].Name] = &all.Items[i]
	}
	return seen
}

func (b *kueueBench) workload(w *queueWorld) *kueue.Workload {
	b.made++
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprintf("probe-%d", b.made)}}
	wl.Spec.QueueName = kueue.LocalQueueName(oneOf(b.random, w.locals...).Name)
	wl.Spec.Priority = new(int32(b.random.IntN(3)))
	for i := range 1 + b.random.IntN(2) {
		ps := kueue.PodSet{Name: kueue.PodSetReference(fmt.Sprintf("set%d", i)), Count: int32(1 + b.random.IntN(4))}
		requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(oneOf(b.random, "250m", "500m", "1", "2"))}
		if b.random.IntN(3) == 0 {
			requests[corev1.ResourceMemory] = resource.MustParse(oneOf(b.random, "1", "2"))
		}
		if b.random.IntN(6) == 0 {
			requests["example.com/gpu"] = resource.MustParse("1")
		}
		spec := &ps.Template.Spec
		spec.RestartPolicy = corev1.RestartPolicyNever
		spec.Containers = []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Requests: requests, Limits: gpusOf(requests)}}}
		b.vary(wl, &ps, i)
		wl.Spec.PodSets = append(wl.Spec.PodSets, ps)
	}
	return wl
}

func gpusOf(requests corev1.ResourceList) corev1.ResourceList {
	if gpus, found := requests["example.com/gpu"]; found {
		return corev1.ResourceList{"example.com/gpu": gpus}
	}
	return nil
}

func (b *kueueBench) vary(wl *kueue.Workload, ps *kueue.PodSet, i int) {
	spec := &ps.Template.Spec
	if b.random.IntN(2) == 0 {
		spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	}
	switch b.random.IntN(6) {
	case 0:
		spec.NodeSelector = map[string]string{"pool": oneOf(b.random, "labelled", "another")}
	case 1:
		spec.InitContainers = []corev1.Container{{Name: "i", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		}}}
	case 2:
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	case 3:
		if i == 0 && ps.Count > 1 {
			ps.MinCount = new(int32(1))
		}
	}
}

// predict says what is to come of the probe, from what holds quota.
func (b *kueueBench) predict(w *queueWorld) {
	request := capacity.Request{PodSets: w.probe.Spec.PodSets, Priority: *w.probe.Spec.Priority, Created: time.Now()}
	for _, local := range w.locals {
		if local.Name == string(w.probe.Spec.QueueName) {
			request.Queue = local
		}
	}
	var known []capacity.Holder
	for _, wl := range w.running {
		known = append(known, capacity.Holder{
			Queue: wl.Status.Admission.ClusterQueue, Priority: *wl.Spec.Priority, Created: wl.CreationTimestamp.Time, Holds: capacity.HoldsOf(wl.Status.Admission),
		})
	}
	w.predicted = capacity.NewWorker(w.queues, w.cohorts, b.flavors).Predict(request, known, nil)
}

func (b *kueueBench) compare(w *queueWorld, seen map[string]*kueue.Workload) {
	b.compared++
	got := w.outcome(seen)
	if b.classes == nil {
		b.classes = map[capacity.Class]int{}
	}
	b.classes[got]++
	wl := seen[w.probe.Name]
	reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	untold := got == capacity.FitsLater && w.predicted.Class == capacity.NeverFits && isTooMuchTogether(reserved.Message)
	if got != w.predicted.Class && !untold {
		b.wrong = append(b.wrong, fmt.Sprintf("%s of %s, priority %d: predicted %d (%s), was %d (%s); asks %s", wl.Name, wl.Spec.QueueName, *wl.Spec.Priority, w.predicted.Class, w.predicted.Why, got, reserved.Message, asksOf(wl)))
	}
}

// asksOf is for a report.
func asksOf(wl *kueue.Workload) (all []string) {
	for _, ps := range wl.Spec.PodSets {
		spec := ps.Template.Spec
		one := fmt.Sprintf("%d of %v, init %d, overhead %v, selector %v, tolerations %d", ps.Count, spec.Containers[0].Resources.Requests, len(spec.InitContainers), spec.Overhead, spec.NodeSelector, len(spec.Tolerations))
		if ps.MinCount != nil {
			one += fmt.Sprintf(", at least %d", *ps.MinCount)
		}
		all = append(all, one)
	}
	return all
}

// tidy lets most of those with quota keep it, and removes all that wait, and those of whom some are evicted.
func (b *kueueBench) tidy(w *queueWorld, seen map[string]*kueue.Workload) {
	var stay []*kueue.Workload
	evicting := w.outcome(seen) == capacity.FitsPreempting // whom, may not be seen yet
	for _, wl := range append(w.running, w.probe) {
		now := seen[wl.Name]
		if now.Status.Admission != nil && !evicting && b.random.IntN(8) > 0 {
			stay = append(stay, now)
			continue
		}
		b.deleteWorkload(now)
	}
	w.running = stay
}

func (b *kueueBench) deleteWorkload(wl *kueue.Workload) {
	if len(wl.Finalizers) > 0 {
		b.Expect(on(capacityWorker).Patch(b.ctx, wl, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	}
	b.Expect(client.IgnoreNotFound(on(capacityWorker).Delete(b.ctx, wl))).To(Succeed())
}
