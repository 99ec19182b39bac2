// Package takeover_test moves running jobs from stock MultiKueue to Ferry and back, on real clusters of its own.
package takeover_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/test/fixtures"
)

const namespace = "takeover"

// ferryConfig has the origin that MultiKueue's copies carry.
const ferryConfig = playground.DefaultFerryConfig + `  probeInterval: 1s
  reconnectBackoff: {initial: 250ms, max: 1s}
leaderElection:
  leaderElect: false
multiKueue:
  origin: multikueue
`

// stage is the fleet, with what runs on it.
type stage struct {
	*WithT
	ctx     context.Context
	fleet   *playground.Playground
	running []client.Object
	// at is where each of them runs, and as which object.
	at map[string]place
}

type place struct {
	worker string
	uid    types.UID
}

// TestTakeOver: stock MultiKueue dispatches one job of each kind; Ferry takes over, and hands back: nothing is made anew.
func TestTakeOver(t *testing.T) {
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	s := &stage{WithT: NewWithT(t), ctx: t.Context(), at: map[string]place{}}
	var err error
	s.fleet, err = playground.Start(s.ctx, playground.Options{
		Name: fmt.Sprintf("takeover-%d", os.Getpid()), Workers: 2, NodesPerWorker: 1, StockMultiKueue: true, FerryConfig: ferryConfig,
		FerryArgs: []string{"--v=2", "--log-format=text"}, Frameworks: []string{"batch/job", "pod", "statefulset"},
		Progress: os.Stderr, Keep: os.Getenv("FERRY_E2E_KEEP") != "",
	})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { s.Expect(s.fleet.Stop()).To(Succeed()) })
	s.Expect(s.fleet.InstallQueues(s.ctx, fixtures.Queues(namespace, fixtures.WorkerCPU("4"), fixtures.ManagerCPU("100")))).To(Succeed())

	s.running = []client.Object{
		fixtures.Job(namespace, "train", fixtures.RunsOn(), fixtures.CPU("1")),
		pod("single"), statefulSet("web"),
	}
	for _, obj := range s.running {
		s.Expect(s.fleet.Manager().Client().Create(s.ctx, obj)).To(Succeed(), obj.GetName())
	}
	for _, obj := range s.running {
		s.Eventually(func(g Gomega) { s.at[obj.GetName()] = s.find(g, obj) }).Should(Succeed(), obj.GetName())
	}
	s.at["web-1"] = place{worker: s.at["web"].worker}
	s.Eventually(func(g Gomega) { s.at["web-1"] = s.findOn(g, s.at["web"].worker, pod("web-1")) }).Should(Succeed())
	waiting := fixtures.Job(namespace, "waiting", fixtures.RunsOn(), fixtures.CPU("4"))
	s.Expect(s.fleet.Manager().Client().Create(s.ctx, waiting)).To(Succeed())
	offers := s.offers(waiting)

	t.Log("to Ferry")
	s.Expect(s.fence(s.ctx)).To(Succeed())
	s.Expect(s.fleet.ToFerry(s.ctx)).To(Succeed())
	for _, obj := range append(s.running, pod("web-0"), pod("web-1")) {
		worker := s.at["web"].worker
		if at, found := s.at[obj.GetName()]; found {
			worker = at.worker
		}
		s.Eventually(func(g Gomega) {
			live := fresh(obj)
			g.Expect(s.fleet.Worker(worker).Client().Get(s.ctx, client.ObjectKeyFromObject(obj), live)).To(Succeed())
			g.Expect(live.GetAnnotations()).To(HaveKey(kinds.JobAnnotation))
		}).Should(Succeed(), "%s is adopted", obj.GetName())
	}
	s.Eventually(func(g Gomega) { g.Expect(s.adopted(g, waiting)).To(Equal(offers)) }).Should(Succeed(), "the offers are adopted")
	s.expectUndisturbed(t)
	s.Eventually(func(g Gomega) {
		set := &appsv1.StatefulSet{}
		g.Expect(s.fleet.Manager().Client().Get(s.ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, set)).To(Succeed())
		g.Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(2), "the manager shows the worker's pods")
	}).Should(Succeed())

	t.Log("and back")
	s.Expect(s.fleet.ToMultiKueue(s.ctx)).To(Succeed())
	s.expectUndisturbed(t)
	short := fixtures.Job(namespace, "short", fixtures.RunsFor(time.Second), fixtures.CPU("500m"))
	s.Expect(s.fleet.Manager().Client().Create(s.ctx, short)).To(Succeed())
	s.Eventually(func(g Gomega) {
		g.Expect(s.fleet.Manager().Client().Get(s.ctx, client.ObjectKeyFromObject(short), short)).To(Succeed())
		g.Expect(short.Status.Succeeded).To(BeEquivalentTo(1), "MultiKueue dispatches again")
	}).Should(Succeed())
	s.expectUndisturbed(t)
}

// find is where an object runs, once the manager says so.
func (s *stage) find(g Gomega, obj client.Object) place {
	wl := s.workloadOf(g, obj)
	g.Expect(wl.Status.ClusterName).NotTo(BeNil())
	g.Expect(meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted)).To(BeTrue())
	return s.findOn(g, *wl.Status.ClusterName, obj)
}

func (s *stage) findOn(g Gomega, worker string, obj client.Object) place {
	live := fresh(obj)
	g.Expect(s.fleet.Worker(worker).Client().Get(s.ctx, client.ObjectKeyFromObject(obj), live)).To(Succeed())
	return place{worker, live.GetUID()}
}

func (s *stage) workloadOf(g Gomega, obj client.Object) *kueue.Workload {
	list := &kueue.WorkloadList{}
	g.Expect(s.fleet.Manager().Client().List(s.ctx, list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		for _, owner := range list.Items[i].OwnerReferences {
			if owner.Name == obj.GetName() {
				return &list.Items[i]
			}
		}
	}
	g.Expect(obj.GetName()).To(BeEmpty(), "has no Workload yet")
	return nil
}

// offers are the copies of a waiting Workload, once all workers have one.
func (s *stage) offers(obj client.Object) map[string]types.UID {
	found := map[string]types.UID{}
	s.Eventually(func(g Gomega) {
		wl := s.workloadOf(g, obj)
		for _, w := range s.fleet.Workers() {
			c := &kueue.Workload{}
			g.Expect(w.Client().Get(s.ctx, client.ObjectKeyFromObject(wl), c)).To(Succeed())
			found[w.Name] = c.UID
		}
	}).Should(Succeed(), "offers")
	return found
}

func (s *stage) adopted(g Gomega, obj client.Object) map[string]types.UID {
	found := map[string]types.UID{}
	wl := s.workloadOf(g, obj)
	for _, w := range s.fleet.Workers() {
		c := &kueue.Workload{}
		g.Expect(w.Client().Get(s.ctx, client.ObjectKeyFromObject(wl), c)).To(Succeed())
		g.Expect(c.Annotations).To(HaveKey(kinds.JobAnnotation))
		found[w.Name] = c.UID
	}
	return found
}

// expectUndisturbed: everything is where it was, the same object, nothing was evicted, and no pod runs on the manager.
func (s *stage) expectUndisturbed(t *testing.T) {
	t.Helper()
	s.Consistently(func(g Gomega) {
		for _, obj := range append(s.running, pod("web-1")) {
			g.Expect(s.findOn(g, s.at[obj.GetName()].worker, obj)).To(Equal(s.at[obj.GetName()]), obj.GetName())
		}
		for _, obj := range s.running {
			wl := s.workloadOf(g, obj)
			g.Expect(wl.Status.ClusterName).To(HaveValue(Equal(s.at[obj.GetName()].worker)), obj.GetName())
			g.Expect(wl.Status.SchedulingStats).To(BeNil(), "%s was evicted", obj.GetName())
		}
		pods := &corev1.PodList{}
		g.Expect(s.fleet.Manager().Client().List(s.ctx, pods, client.InNamespace(namespace))).To(Succeed())
		for _, p := range pods.Items {
			g.Expect(p.Spec.NodeName).To(BeEmpty(), "%s runs on the manager", p.Name)
		}
	}, 5*time.Second, 500*time.Millisecond).Should(Succeed())
}

// fence is what docs/configuration.md tells administrators to do: no node of the manager fits what MultiKueue dispatched.
func (s *stage) fence(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := s.fleet.Manager().Client().List(ctx, pods, client.MatchingLabels{"kueue.x-k8s.io/managed": "true"}); err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, []byte(
		`{"metadata": {"labels": {"ferry.dev/dispatched": "true"}}, "spec": {"nodeSelector": {"ferry.dev/dispatched": "elsewhere"}}}`))
	for i := range pods.Items {
		if err := s.fleet.Manager().Client().Patch(ctx, &pods.Items[i], patch); err != nil {
			return fmt.Errorf("fence %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

func fresh(obj client.Object) client.Object {
	switch obj.(type) {
	case *batchv1.Job:
		return &batchv1.Job{}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{}
	default:
		return &corev1.Pod{}
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{fixtures.QueueLabel: fixtures.Queue},
			Annotations: map[string]string{"playground.ferry.dev/run-for": "1h"},
		},
		Spec: podSpec(),
	}
}

func podSpec() corev1.PodSpec {
	return fixtures.Job(namespace, "like", fixtures.RunsOn(), fixtures.CPU("500m")).Spec.Template.Spec
}

func statefulSet(name string) *appsv1.StatefulSet {
	app := map[string]string{"app": name}
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyAlways
	return &appsv1.StatefulSet{
		ObjectMeta: pod(name).ObjectMeta,
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: app}, ServiceName: name,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: spec},
		},
	}
}
