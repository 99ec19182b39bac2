package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
)

// withdrawing is a world in which workers are withdrawn from, within 10 minutes.
type withdrawing struct {
	*world
	clock *clocktesting.FakePassiveClock
	left  []string
}

func newWithdrawing(t *testing.T, objects ...client.Object) *withdrawing {
	w := &withdrawing{world: newWorld(t, objects...), clock: clocktesting.NewFakePassiveClock(time.Now())}
	w.WithdrawTimeout, w.Clock = 10*time.Minute, w.clock
	w.Vacated = func(worker string) { w.fleet.calls = append(w.fleet.calls, "vacated "+worker) }
	w.Left = func(context.Context, string) []string { return w.left }
	w.fleet.status = fleet.Status{Reach: fleet.Connected}
	return w
}

func (w *withdrawing) isGone(g Gomega) bool {
	err := w.Client.Get(context.Background(), client.ObjectKey{Name: "w1"}, &kueue.MultiKueueCluster{})
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err)
}

func (w *withdrawing) delete(g Gomega) {
	w.reconcile(g)
	g.Expect(w.Client.Delete(context.Background(), cluster(fromSecret("w1-secret")))).To(Succeed())
	w.fleet.calls = nil
	for len(w.recorder.Events) > 0 {
		<-w.recorder.Events
	}
}

func TestADeletedClusterIsWithdrawnFromFirst(t *testing.T) {
	g := NewWithT(t)
	w := newWithdrawing(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	w.left = []string{"Job.batch team/train"}
	w.delete(g)
	g.Expect(w.reconcile(g).RequeueAfter).To(Equal(time.Second))
	g.Expect(w.reconcile(g).RequeueAfter).To(Equal(time.Second))
	g.Expect(w.isGone(g)).To(BeFalse())
	g.Expect(w.fleet.calls).To(Equal([]string{"leave w1 true"}), "it stays connected")
	g.Expect(w.recorder.Events).To(Receive(HavePrefix("Normal Withdrawing")))
	g.Expect(w.recorder.Events).NotTo(Receive(), "said once")
	w.left = nil
	g.Expect(w.reconcile(g)).To(BeZero())
	g.Expect(w.isGone(g)).To(BeTrue())
	g.Expect(w.fleet.calls).To(Equal([]string{"leave w1 true", "vacated w1", "remove w1"}))
	g.Expect(w.recorder.Events).To(Receive(HavePrefix("Normal Withdrawn")))
}

// TestADeletionNeverWaitsForEver: what cannot be withdrawn from in time, or at all, is left behind, and an event says what.
func TestADeletionNeverWaitsForEver(t *testing.T) {
	for name, test := range map[string]struct {
		reach  fleet.Reach
		left   string
		secret bool
		after  time.Duration
		gone   bool
		says   string
	}{
		"reachable, in time":                {fleet.Connected, "a", true, 9 * time.Minute, false, "Normal Withdrawing"},
		"reachable, out of time":            {fleet.Connected, "a", true, 11 * time.Minute, true, "Warning LeftBehind The worker could not be withdrawn from within 10m0s. Left behind are a:"},
		"lost, in time":                     {fleet.Lost, "a", true, time.Minute, false, "Normal Withdrawing"},
		"lost, out of time":                 {fleet.Lost, "a b", true, 11 * time.Minute, true, "Warning LeftBehind The worker could not be withdrawn from within 10m0s. Left behind are a, b:"},
		"lost, and nothing was given to it": {fleet.Lost, "", true, 0, true, "Normal Withdrawn"},
		"connecting, as after a restart":    {fleet.Connecting, "", true, time.Minute, false, "Normal Withdrawing"},
		"Secret gone, connection there":     {fleet.Connected, "a", false, time.Minute, false, "Normal Withdrawing"},
		"Secret gone, no connection":        {fleet.Connecting, "a", false, 0, true, "Warning LeftBehind There are no credentials"},
		"many":                              {fleet.Lost, "a b c d e f g h i j k l", true, time.Hour, true, "Warning LeftBehind The worker could not be withdrawn from within 10m0s. Left behind are a, b, c, d, e, f, g, h, i, j and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWithdrawing(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
			w.left = strings.Fields(test.left)
			w.delete(g)
			if !test.secret {
				g.Expect(w.Client.Delete(context.Background(), secret("kubeconfig", kubeConfig))).To(Succeed())
			}
			w.fleet.status.Reach = test.reach
			w.clock.SetTime(w.clock.Now().Add(test.after))
			w.reconcile(g)
			g.Expect(w.isGone(g)).To(Equal(test.gone))
			g.Expect(w.recorder.Events).To(Receive(HavePrefix(test.says)))
		})
	}
}

func TestWithoutATimeNothingIsWithdrawn(t *testing.T) {
	g := NewWithT(t)
	w := newWithdrawing(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	w.WithdrawTimeout, w.left = 0, []string{"a"}
	w.delete(g)
	g.Expect(w.isGone(g)).To(BeTrue(), "no finalizer")
	w.reconcile(g)
	g.Expect(w.fleet.calls).To(Equal([]string{"remove w1"}))
}

// TestAKubeconfigOfAnotherCluster: as long as there is something of ours where it led before, that is withdrawn from first.
func TestAKubeconfigOfAnotherCluster(t *testing.T) {
	g := NewWithT(t)
	w := newWithdrawing(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	w.left = []string{"a"}
	w.reconcile(g)
	w.fleet.calls, w.fleet.other = nil, true
	g.Expect(w.Client.Update(context.Background(), secret("kubeconfig", strings.ReplaceAll(kubeConfig, "worker1", "worker9")))).To(Succeed())
	for range 3 {
		g.Expect(w.reconcile(g).RequeueAfter).To(Equal(time.Second))
	}
	g.Expect(w.fleet.calls).To(Equal([]string{"leave w1 true"}))
	w.left = nil
	w.reconcile(g)
	g.Expect(w.fleet.calls).To(Equal([]string{"leave w1 true", "leave w1 false", "set w1 https://worker9.example:6443"}))
}

func TestAMoveIsBounded(t *testing.T) {
	g := NewWithT(t)
	w := newWithdrawing(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	w.left, w.fleet.other = []string{"a"}, true
	w.reconcile(g)
	w.clock.SetTime(w.clock.Now().Add(9 * time.Minute))
	w.reconcile(g)
	g.Expect(w.fleet.calls).To(Equal([]string{"leave w1 true"}))
	w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
	w.reconcile(g)
	g.Expect(w.fleet.calls).To(Equal([]string{"leave w1 true", "leave w1 false", "set w1 https://worker1.example:6443"}))
	g.Expect(w.recorder.Events).To(Receive(HavePrefix("Normal Withdrawing")))
	g.Expect(w.recorder.Events).To(Receive(HavePrefix("Warning LeftBehind The cluster that the credentials led to before")))
}
