package e2e_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/playground/audit"
	"ferry.dev/ferry/test/fixtures"
)

// TestBestDispatcher: the worker with the most room is asked first, and alone; a burst spreads by what is free; and what
// waits goes to the worker that becomes free.
func TestBestDispatcher(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.ManagerCPU("100"), fixtures.CPUOf("w1", "3"), fixtures.CPUOf("w2", "6"))
	s.setConfig(func(c *kueue.MultiKueueConfig) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, placement.DispatcherAnnotation, placement.BestName)
	})
	s.submit("warm", fixtures.CPU("1"), fixtures.RunsFor(time.Second)) // from now on the workers' queues are read
	s.awaitComplete("warm")

	since := time.Now()
	s.submit("large", fixtures.CPU("4"), fixtures.RunsOn())
	s.awaitRunningOn("w2", "large")
	s.Expect(s.offersMade("w1", since)).To(BeZero(), "copies on the worker that it never fits")
	s.submit("next", fixtures.CPU("3"), fixtures.RunsOn())
	s.awaitRunningOn("w1", "next")
	s.Expect(s.offersMade("w2", since)).To(Equal(1), "copies on the worker that has no room")

	s.submit("waits", fixtures.CPU("3"), fixtures.RunsOn())
	s.awaitMessage("waits", "fits once others end")
	s.Expect(manager().Delete(s.ctx, s.job(s, "manager", "next"), background)).To(Succeed())
	s.awaitRunningOn("w1", "waits")
}

// offersMade counts the copies of Workloads that Ferry made on a worker for this site.
func (s *site) offersMade(worker string, since time.Time) int {
	s.t.Helper()
	counts, err := audit.CountRequests(fleet.Worker(worker).AuditLog(), since, func(r audit.Request) bool {
		return r.Resource == "workloads" && r.Verb == "create" && r.Namespace == s.namespace && r.Code == http.StatusCreated
	})
	s.Expect(err).NotTo(HaveOccurred())
	total := 0
	for _, count := range counts {
		total += count
	}
	return total
}
