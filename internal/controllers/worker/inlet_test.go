package worker

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestInletForgetsNothing(t *testing.T) {
	g := NewWithT(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	inlet := &Inlet{}
	inlet.Notify("early")
	g.Expect(inlet.Start(t.Context(), queue)).To(Succeed())
	inlet.Notify("late", "later", "late")
	g.Expect(queue.Len()).To(Equal(3))
	for _, name := range []string{"early", "late", "later"} {
		request, _ := queue.Get()
		g.Expect(request.Name).To(Equal(name))
	}
}
