package fleet

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

var clusterQueueKind = kueue.SchemeGroupVersion.WithKind("ClusterQueue")

// serveQueues has a worker serve Kueue's cluster-wide kinds.
func (a *apiServer) serveQueues() {
	for resource, kind := range map[string]string{"clusterqueues": "ClusterQueue", "cohorts": "Cohort", "resourceflavors": "ResourceFlavor"} {
		a.serve(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: resource}, kind)
	}
}

func queueNames(conn Conn) func() []string {
	return func() []string {
		list := &kueue.ClusterQueueList{}
		if err := conn.Reader().List(context.Background(), list); err != nil {
			return []string{err.Error()}
		}
		names := []string{}
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names
	}
}

// TestQueuesAreReadOnceWanted: before that they cost nothing; then on every worker, also on one that is connected later.
func TestQueuesAreReadOnceWanted(t *testing.T) {
	g := NewWithT(t)
	queues := &seen{}
	f, _ := startFleet(t, func(o *Options) {
		o.Events.Queues = func(worker string, obj client.Object) {
			if obj != nil {
				queues.changed(worker, obj)
			}
		}
	})
	conns := map[string]Conn{}
	for _, name := range []string{"w1", "w2"} {
		api := newAPIServer(t)
		api.serveQueues()
		api.put("clusterqueues", "kueue.x-k8s.io/v1beta2", "ClusterQueue", "jobs-on-"+name, "")
		if name == "w2" {
			f.ReadQueues()
			f.ReadQueues() // again
		}
		f.Set(name, api.config("good"), "1")
		conns[name] = mustConn(g, f, name)
		if name == "w1" {
			served, why := conns["w1"].Serves(clusterQueueKind)
			g.Expect(served).To(BeFalse())
			g.Expect(why).To(Equal("it has not been read"))
			g.Expect(api.count("clusterqueues", "cohorts", "resourceflavors")).To(BeZero())
		}
	}
	for name, conn := range conns {
		g.Eventually(queueNames(conn), patience).Should(Equal([]string{"jobs-on-" + name}))
		g.Expect(conn.Find(clusterQueueKind, "jobs-on-"+name)).To(HaveField("Name", "jobs-on-"+name))
		g.Expect(conn.Find(clusterQueueKind, "jobs")).To(BeNil())
		g.Eventually(queues.allChanges, patience).Should(ContainElement(name + " *v1beta2.ClusterQueue jobs-on-" + name))
	}
}

// TestForbiddenQueuesTakeNothingElse: a role from before there was a reason to read queues is as good as ever.
func TestForbiddenQueuesTakeNothingElse(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.serveQueues()
	for _, verb := range []string{"list", "watch"} {
		api.fail(verb+" clusterqueues", forbiddenAnswer(verb, "clusterqueues"))
	}
	told := make(chan string, 100)
	f, _ := startFleet(t, func(o *Options) {
		o.Events.Queues = func(worker string, obj client.Object) {
			if obj == nil {
				told <- worker
			}
		}
	})
	f.ReadQueues()
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	g.Eventually(func() string { _, why := conn.Serves(clusterQueueKind); return why }, patience).Should(ContainSubstring("grant this permission"))
	g.Eventually(told, patience).Should(Receive(Equal("w1")))
	g.Consistently(reach(f, "w1"), "300ms").Should(Equal(Connected))
	g.Eventually(func() bool { served, _ := conn.Serves(jobKind); return served }, patience).Should(BeTrue())

	api.put("clusterqueues", "kueue.x-k8s.io/v1beta2", "ClusterQueue", "jobs", "")
	api.fail("list clusterqueues", nil)
	api.fail("watch clusterqueues", nil)
	g.Eventually(queueNames(conn), patience).Should(Equal([]string{"jobs"}))
	api.fail("*", answer(http.StatusInternalServerError, "InternalError", "down"))
	g.Eventually(reach(f, "w1"), patience).ShouldNot(Equal(Connected))
}
