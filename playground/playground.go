// Package playground runs a fleet of real clusters on loopback, each with its own etcd, API server, controller manager and stock Kueue: for the demo, the e2e tests and the benchmark.
package playground

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ferry.dev/ferry/playground/build"
	"ferry.dev/ferry/playground/operator"
	"ferry.dev/ferry/playground/pki"
	"ferry.dev/ferry/playground/process"
	"ferry.dev/ferry/playground/proxy"
	"ferry.dev/ferry/playground/ray"
	"ferry.dev/ferry/playground/reserve"
)

// ManagerName is the name of the manager cluster; workers are w1, w2 and so on.
const ManagerName = "manager"

// DaemonFiles is how the files of a daemon begin; they are in the state folder before the playground starts.
const DaemonFiles = "daemon."

// aloneName is the reservation of Options.Alone.
const aloneName = "alone"

// Playground is a running fleet. Its processes die with the process that started it.
type Playground struct {
	options  Options
	builder  *build.Builder
	binaries build.Binaries
	kueueDir string
	ports    *reserve.Set
	began    time.Time

	manager *Cluster
	workers []*Cluster
	ferry   FerryAddresses
	ferryCA *pki.CA // of Ferry's webhooks

	operating sync.Mutex // one change of operators at a time

	mu        sync.Mutex // guards what follows
	processes []*process.Process
	links     map[string]*proxy.Proxy
	rays      []*ray.Server
	stopped   bool
}

// Start builds what is missing, starts all clusters and returns once they are ready for jobs. The caller owns the
// result and must Stop it. When Start fails nothing is left running, and the error names the component and shows the
// end of its log. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Playground, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	root, err := build.FindRoot(".")
	if err != nil {
		return nil, err
	}
	p := newPlayground(root, o)
	if err := p.claimState(); err != nil {
		return nil, err
	}
	if o.Alone {
		if err := p.awaitTurn(ctx, aloneName); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
	}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func newPlayground(root string, o Options) *Playground {
	return &Playground{
		options: o,
		builder: &build.Builder{Root: root, Progress: o.Progress},
		ports:   &reserve.Set{},
		began:   time.Now(),
		links:   map[string]*proxy.Proxy{},
	}
}

// LockName is what the owner of a playground holds in package reserve while it lives. Names there are short; a path may not be.
func LockName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "state-" + hex.EncodeToString(sum[:16])
}

// claimState takes the state folder. What is in it without an owner is the rest of a crash.
func (p *Playground) claimState() error {
	err := p.ports.Name(LockName(p.Dir()))
	if errors.Is(err, reserve.ErrTaken) {
		return fmt.Errorf("playground %q runs already; take it down first, or choose another name", p.options.Name)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.Dir(), 0o755); err != nil {
		return fmt.Errorf("make the state folder: %w", err)
	}
	rest, err := os.ReadDir(p.Dir())
	if err != nil {
		return fmt.Errorf("read the state folder: %w", err)
	}
	for _, entry := range rest {
		if strings.HasPrefix(entry.Name(), DaemonFiles) {
			continue
		}
		if err := RemoveState(filepath.Join(p.Dir(), entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// awaitTurn takes a place that one playground has at a time; Stop gives it back.
func (p *Playground) awaitTurn(ctx context.Context, place string) error {
	err := p.ports.Name(place)
	if errors.Is(err, reserve.ErrTaken) {
		p.say("waiting for another playground on this machine to end")
	}
	for errors.Is(err, reserve.ErrTaken) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("another playground on this machine did not end: %w", ctx.Err())
		case <-time.After(pollEvery):
			err = p.ports.Name(place)
		}
	}
	return err
}

func (p *Playground) start(ctx context.Context) error {
	var err error
	if p.binaries, err = p.builder.All(ctx, p.options.Ferry); err != nil {
		return err
	}
	if p.kueueDir, err = p.builder.KueueDir(ctx); err != nil {
		return err
	}
	operators, err := operator.Resolve(p.options.Operators...)
	if err != nil {
		return err
	}
	if err := p.buildOperators(ctx, operators); err != nil {
		return err
	}
	p.began = time.Now()
	p.manager = newCluster(p, ManagerName)
	for i := range p.options.Workers {
		p.workers = append(p.workers, newCluster(p, fmt.Sprintf("w%d", i+1)))
	}
	p.say("starting the clusters")
	err = each(ctx, p.Clusters(), func(ctx context.Context, c *Cluster) error { return c.start(ctx) })
	if err != nil {
		return err
	}
	if err := p.startOperators(ctx, operators); err != nil {
		return err
	}
	if err := p.connectWorkers(ctx); err != nil {
		return err
	}
	if p.options.Ferry {
		if err := p.startFerry(ctx); err != nil {
			return err
		}
	}
	p.say("ready after %s", time.Since(p.began).Round(100*time.Millisecond))
	return nil
}

// say tells progress, with the seconds since the clusters began to start.
func (p *Playground) say(format string, args ...any) {
	if p.options.Progress == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.options.Progress, "%5.1fs  "+format+"\n", append([]any{time.Since(p.began).Seconds()}, args...)...)
}

// Stop ends all processes and removes the state folder (unless Options.Keep). Calling it again is fine.
func (p *Playground) Stop() error {
	p.mu.Lock()
	stopped := p.stopped
	p.stopped = true
	processes := p.processes
	for _, link := range p.links {
		link.Close()
	}
	for _, heads := range p.rays {
		heads.Close()
	}
	p.mu.Unlock()
	if stopped {
		return nil
	}
	var all sync.WaitGroup
	failures := make([]error, len(processes))
	for i, c := range processes {
		// Their data goes away with them, so nothing is gained by a graceful end.
		all.Go(func() { failures[i] = c.Kill() })
	}
	all.Wait()
	if !p.options.Keep {
		failures = append(failures, RemoveState(p.Dir()))
	}
	p.ports.Release()
	return errors.Join(failures...)
}

// Name of the playground.
func (p *Playground) Name() string { return p.options.Name }

// Dir is the state folder.
func (p *Playground) Dir() string { return filepath.Join(p.builder.Home(), p.options.Name) }

// Manager is the cluster where jobs are submitted.
func (p *Playground) Manager() *Cluster { return p.manager }

// Workers are the clusters where jobs run.
func (p *Playground) Workers() []*Cluster { return p.workers }

// Worker finds a worker by name, nil when there is none.
func (p *Playground) Worker(name string) *Cluster {
	for _, w := range p.workers {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// Clusters are the manager and the workers.
func (p *Playground) Clusters() []*Cluster {
	return append([]*Cluster{p.manager}, p.workers...)
}

// Component finds a process by name, e.g. "ferry", "manager/kueue" or "w1/kube-apiserver"; nil when there is none.
func (p *Playground) Component(name string) *process.Process {
	for _, c := range p.Components() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// Components are all processes, in the order of their start.
func (p *Playground) Components() []*process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*process.Process(nil), p.processes...)
}

// Link is the proxy between the manager and a worker, nil when there is no such worker.
func (p *Playground) Link(worker string) *proxy.Proxy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[worker]
}

// run starts a component and keeps an eye on it from now on.
func (p *Playground) run(spec process.Spec) (*process.Process, error) {
	c := process.New(spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, fmt.Errorf("start %s: the playground has been stopped", spec.Name)
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p.processes = append(p.processes, c)
	return c, nil
}

// forget drops a component that has ended.
func (p *Playground) forget(c *process.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processes = slices.DeleteFunc(slices.Clone(p.processes), func(kept *process.Process) bool { return kept == c })
}

// RemoveState removes a state folder that no process uses any more.
func RemoveState(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the state folder: %w", err)
	}
	return nil
}

// StateDir is the state folder of the named playground in the repository around the current folder.
func StateDir(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	root, err := build.FindRoot(".")
	if err != nil {
		return "", err
	}
	return filepath.Join((&build.Builder{Root: root}).Home(), name), nil
}
