package e2e_test

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

func TestClaimFromBeforeAnEvictionIsNotTakenOver(t *testing.T) {
	s := alone(t)
	doubles := s.watchForDoubles("train")
	s.submit("train", fixtures.RunsOn())
	worker, old := s.awaitRunning("train")
	s.stopFerry()

	s.setStopPolicy("manager", kueue.HoldAndDrain)
	s.Eventually(func(g Gomega) { g.Expect(suspended(s.job(g, "manager", "train"))).To(BeTrue()) }).Should(Succeed())
	// Without Ferry nobody tells the manager that the job stopped, for which Kueue waits; so a user does.
	s.Eventually(func(g Gomega) {
		job := s.job(g, "manager", "train")
		job.Status.Active, job.Status.Ready, job.Status.StartTime = 0, nil, nil
		g.Expect(manager().Status().Update(s.ctx, job)).To(Succeed())
	}).Should(Succeed())
	s.awaitNoQuota("train")
	s.setStopPolicy("manager", kueue.None)
	s.Eventually(func(g Gomega) {
		wl := s.workload(g, "train")
		g.Expect(wl.Status.Admission).NotTo(BeNil(), "reserved again")
		g.Expect(wl.Status.ClusterName).To(BeNil(), "Kueue takes the claim back with the rest")
	}).Should(Succeed())
	s.Expect(s.job(s, worker, "train")).To(HaveValue(HaveField("UID", old)), "the old copy still runs")

	s.startFerry()
	s.Eventually(func(g Gomega) {
		for _, w := range s.workers {
			if job := s.job(g, w, "train"); job != nil {
				g.Expect(job.UID).NotTo(Equal(old), "the old copy")
			}
		}
	}).Should(Succeed())
	_, now := s.awaitRunning("train")
	s.Expect(now).NotTo(Equal(old))
	s.Expect(doubles()).To(BeEmpty())
}

func TestFerryKilledInTheMiddleOfDispatch(t *testing.T) {
	s := alone(t)
	jobs := numbered("train", 10)
	doubles := s.watchForDoubles(jobs...)
	for _, name := range jobs {
		s.submit(name, fixtures.RunsFor(4*time.Second))
	}
	s.Eventually(func(g Gomega) {
		made := 0
		for _, name := range jobs {
			made += len(s.creations(g, name))
		}
		g.Expect(made).To(BeNumerically(">", 1))
	}).WithPolling(10 * time.Millisecond).Should(Succeed())
	s.stopFerry()
	s.startFerry()
	for _, name := range jobs {
		s.awaitComplete(name)
	}
	s.awaitNothingOn(s.workers...)
	s.expectCreatedOnce(jobs...)
	s.Expect(doubles()).To(BeEmpty())
}

// stopFerry kills it; it is started again at the end of the test at the latest.
func (s *site) stopFerry() {
	s.t.Helper()
	s.Expect(fleet.Component("ferry").Kill()).To(Succeed())
	s.t.Cleanup(func() {
		if !fleet.Component("ferry").Running() {
			s.startFerry()
		}
	})
}

func (s *site) startFerry() {
	s.t.Helper()
	s.Expect(fleet.Component("ferry").Start()).To(Succeed())
	s.Expect(fleet.AwaitFerry(s.ctx)).To(Succeed())
}

// watchForDoubles looks all the time whether a job is on two workers at once, started. The result stops that and tells
// which were.
func (s *site) watchForDoubles(jobs ...string) func() []string {
	done := make(chan struct{})
	var all sync.WaitGroup
	var found []string
	all.Go(func() {
		for {
			found = append(found, s.doubles(jobs)...)
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	stop := sync.OnceValue(func() []string { close(done); all.Wait(); return found })
	s.t.Cleanup(func() { stop() })
	return stop
}

// doubles reads the first worker again after the second: a job that moved in between is no double.
func (s *site) doubles(jobs []string) []string {
	var found []string
	before, other, after := s.started("w1"), s.started("w2"), s.started("w1")
	for _, name := range jobs {
		if before[name] != "" && before[name] == after[name] && other[name] != "" {
			found = append(found, name)
		}
	}
	return found
}

// started are the UIDs by name of the Jobs on a worker that are not suspended; none when it cannot be asked.
func (s *site) started(worker string) map[string]string {
	var list batchv1.JobList
	uids := map[string]string{}
	if on(worker).List(s.ctx, &list, client.InNamespace(s.namespace)) != nil {
		return uids
	}
	for i := range list.Items {
		if job := &list.Items[i]; !suspended(job) && job.DeletionTimestamp.IsZero() {
			uids[job.Name] = string(job.UID)
		}
	}
	return uids
}
