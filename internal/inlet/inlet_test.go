package inlet

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestInletForgetsNothing(t *testing.T) {
	g := NewWithT(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	inlet := &Inlet[reconcile.Request]{}
	inlet.Add(requests("early")...)
	g.Expect(inlet.Start(t.Context(), queue)).To(Succeed())
	inlet.Add(requests("late", "later", "late")...)
	g.Expect(queue.Len()).To(Equal(3))
	for _, name := range []string{"early", "late", "later"} {
		request, _ := queue.Get()
		g.Expect(request.Name).To(Equal(name))
	}
}

func TestLowRequestsComeLast(t *testing.T) {
	g := NewWithT(t)
	queue := priorityqueue.New[reconcile.Request]("inlet")
	defer queue.ShutDown()
	inlet := &Inlet[reconcile.Request]{}
	inlet.AddLow(requests("early")...)
	g.Expect(inlet.Start(t.Context(), queue)).To(Succeed())
	inlet.AddLow(requests("swept", "both")...)
	inlet.Add(requests("fresh", "both")...)
	for _, name := range []string{"early", "fresh", "both", "swept"} {
		request, _ := queue.Get()
		g.Expect(request.Name).To(Equal(name))
	}
}

func requests(names ...string) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return all
}
