// Package e2e_test runs Ferry on real clusters: one playground for all tests, a namespace with queues of its own for each.
package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/operator"
)

const (
	// startWithin leaves room for building Kubernetes from an empty cache.
	startWithin = 50 * time.Minute
	// soon bounds every wait, for machines that do other work too.
	soon = 90 * time.Second
	// atOnce is how many tests run beside each other: they wait more than they work.
	atOnce = "4"
)

// ferryConfig ends within the section multiKueue, so that a test may add to it. A busy machine makes probes slow and
// lets leases expire, and nobody here would start Ferry again: hence the patience, and no leader election.
const ferryConfig = playground.DefaultFerryConfig + `  probeInterval: 1s
  probeTimeout: 5s
  reconnectBackoff: {initial: 250ms, max: 1s}
leaderElection:
  leaderElect: false
multiKueue:
  externalFrameworks:` + externalFrameworks + `
  workerLostTimeout: 15s
`

// fleet is the playground of this package.
var fleet *playground.Playground

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	gomega.SetDefaultEventuallyTimeout(soon)
	gomega.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	gomega.SetDefaultConsistentlyDuration(2 * time.Second)
	gomega.SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	if err := letTestsRunBesideEachOther(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	interrupted, interrupt := context.WithCancel(context.Background())
	go func() { <-signals; interrupt() }()
	ctx, cancel := context.WithTimeout(interrupted, startWithin)
	defer cancel()
	p, err := playground.Start(ctx, playground.Options{
		Name: fmt.Sprintf("e2e-%d", os.Getpid()), Workers: 2, Ferry: true, Alone: true,
		WorkerGates: map[string]bool{"MultiKueueOrchestratedPreemption": true},
		FerryConfig: ferryConfig, FerryArgs: []string{"--v=2", "--log-format=text"},
		Frameworks: []string{operator.All}, CRDsOf: []string{operator.All},
		Progress: os.Stderr, Keep: os.Getenv("FERRY_E2E_KEEP") != "",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the playground:", err)
		return 1
	}
	fleet = p
	go stopWhenInterrupted(interrupted, p)
	code := m.Run()
	if err := p.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the playground:", err)
		return 1
	}
	return code
}

// stopWhenInterrupted: the test runner would end at once and leave the playground's files behind.
func stopWhenInterrupted(interrupted context.Context, p *playground.Playground) {
	<-interrupted.Done()
	_ = p.Stop() // when the tests ended by themselves it has been stopped already
	os.Exit(1)
}

// letTestsRunBesideEachOther raises -parallel unless it was given: its default is the number of cores.
func letTestsRunBesideEachOther() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", atOnce)
}
