package dispatch

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/plan"
)

// TestInformingComesLast: a turn that is for nothing but to inform waits behind all else; every other one does not,
// also where a look of the resync, which has low priority, found it.
func TestInformingComesLast(t *testing.T) {
	wl := &kueue.Workload{}
	wl.UID = "u"
	start := time.Unix(1000, 0)
	informs := plan.SetCheck{Workload: wl, Informs: true}
	for name, test := range map[string]struct {
		again, want time.Duration
		priority    int
	}{
		"nothing else to do":  {0, informEvery - 2*informGap, handler.LowPriority},
		"something else soon": {time.Second, time.Second, 0},
		"something else late": {time.Hour, informEvery - 2*informGap, handler.LowPriority},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler{Observer: &observe.Observer{Memory: observe.NewMemory()}, Applier: &apply.Applier{Manager: fake.NewClientBuilder().Build()}}
			for i := range time.Duration(informBurst) {
				g.Expect(r.pace.inform(wl.UID, start.Add(i*informGap))).To(BeZero())
			}
			now := start.Add((informBurst - 1) * informGap)
			wrote, again, err := r.write(t.Context(), plan.Snapshot{Now: now}, plan.Plan{Manager: []plan.Action{informs}, Again: test.again})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(wrote).To(BeFalse())
			g.Expect(again.result()).To(Equal(reconcile.Result{RequeueAfter: test.want, Priority: ptr.To(test.priority)}))
		})
	}
}
