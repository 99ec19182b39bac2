package e2e_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"ferry.dev/ferry/test/fixtures"
)

// TestRetention: what is finished stays where it ran for as long as it is told to, across Ferry's restart, and holds no
// quota there; a deleted job goes at once.
func TestRetention(t *testing.T) {
	s := alone(t, fixtures.OnWorkers("w1"), fixtures.WorkerCPU("1"))
	s.reconfigure("  objectRetentionPolicies: {remoteObjects: {afterFinished: 25s}}\n")
	names := []string{"first", "second", "deleted"}
	kept := map[string]string{}
	for _, name := range names {
		s.submit(name, fixtures.CPU("1"), fixtures.RunsFor(time.Second))
		s.awaitComplete(name)
		kept[name] = string(s.job(s, "w1", name).UID)
	}
	s.Expect(manager().Delete(s.ctx, s.job(s, "manager", "deleted"), background)).To(Succeed())
	s.Eventually(func(g Gomega) { g.Expect(s.job(g, "w1", "deleted")).To(BeNil()) }).Should(Succeed())
	s.stopFerry()
	s.startFerry()
	s.Consistently(func(g Gomega) {
		for _, name := range []string{"first", "second"} {
			there := s.job(g, "w1", name)
			g.Expect(there).NotTo(BeNil(), name)
			g.Expect(string(there.UID)).To(Equal(kept[name]), "%s was run again", name)
		}
		g.Expect(s.pods(g, "w1")).To(ContainElements(HavePrefix("first-"), HavePrefix("second-")), "with their logs")
	}, "2s").Should(Succeed())
	s.awaitNothingOn("w1")
	s.expectCreatedOnce(names...)
}
