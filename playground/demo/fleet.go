package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/daemon"
	"ferry.dev/ferry/playground/operator"
	"ferry.dev/ferry/playground/process"
)

const (
	ferryComponent = "ferry"
	logLines       = 20
	// othersStart bounds the wait for a playground that another command is starting; from an empty cache that takes long.
	othersStart = 30 * time.Minute
)

// fleet is the playground that the demo runs on.
type fleet struct {
	daemon  *daemon.Client
	status  playground.Status
	manager client.Client
	ours    bool // this run started it
	ready   bool // it is worth to be left alone from now on
}

// attach uses the playground that runs, or starts one.
func attach(ctx context.Context, o Options, t terms) (*fleet, error) {
	c, err := daemon.New(o.Name)
	if err != nil {
		return nil, err
	}
	f := &fleet{daemon: c}
	f.status, err = c.Status(ctx)
	if err != nil {
		// Nothing runs, or something that Up will name.
		if err := f.start(ctx, o, t); err != nil {
			return nil, err
		}
	} else if err := f.join(ctx, o, t); err != nil {
		return nil, err
	}
	if f.manager, err = f.connect(); err != nil {
		return nil, f.giveUp(err)
	}
	return f, nil
}

func (f *fleet) start(ctx context.Context, o Options, t terms) error {
	fmt.Fprintf(o.Out, "starting playground %q: a manager, 2 workers and Ferry\n", o.Name)
	if len(t.operators) > 0 {
		fmt.Fprintf(o.Out, "with operators, each of which is built on its first use: %s\n", strings.Join(t.operators, ", "))
	}
	lines := newPatient(o.Out)
	defer lines.stop()
	up := playground.Options{
		Name: o.Name, Workers: 2, Ferry: true, Operators: t.operators, Frameworks: t.frameworks, JobRunsFor: t.runFor, Progress: lines,
	}
	if _, err := daemon.Up(ctx, up); err != nil {
		if ctx.Err() != nil {
			return errors.New("stopped during the start; nothing is left running")
		}
		return fmt.Errorf("the playground did not start, and nothing is left running: %w", err)
	}
	f.ours = true
	var err error
	if f.status, err = f.daemon.Status(ctx); err != nil {
		return f.giveUp(err)
	}
	return nil
}

// join uses a playground that is up already, or that another command is starting.
func (f *fleet) join(ctx context.Context, o Options, t terms) error {
	for end := time.Now().Add(othersStart); !f.status.Ready; {
		if time.Now().After(end) {
			return fmt.Errorf("playground %q is not ready after %s; make down removes it", o.Name, othersStart)
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		var err error
		if f.status, err = f.daemon.Status(ctx); err != nil {
			return err
		}
	}
	if f.status.FerryMetrics == "" {
		return fmt.Errorf("playground %q runs without Ferry; take it down first (make down), or choose another --name", o.Name)
	}
	fmt.Fprintf(o.Out, "using playground %q, which is up; to run changed code, make down first\n", o.Name)
	if err := f.healthy(); err != nil {
		return err
	}
	rows, err := operator.Resolve(t.operators...)
	if err != nil {
		return err
	}
	if err := f.hasOn(operator.Frameworks(t.frameworks, rows)); err != nil {
		return err
	}
	for _, row := range rows {
		fmt.Fprintf(o.Out, "starting operator %s, unless it runs\n", row.Name)
		if err := f.daemon.Operator(ctx, row.Name, "start"); err != nil {
			return err
		}
	}
	return nil
}

// hasOn: what Kueue has on is settled when a playground starts.
func (f *fleet) hasOn(frameworks []string) error {
	for _, framework := range frameworks {
		if !slices.Contains(f.status.Frameworks, framework) {
			return fmt.Errorf("playground %q has %s off in Kueue; take it down first (make down), or choose another --name", f.status.Name, framework)
		}
	}
	return nil
}

// healthy names a component that does not run, with the end of its log.
func (f *fleet) healthy() error {
	for _, c := range f.status.Components {
		switch c.State {
		case process.Running:
		case process.Exited:
			return fmt.Errorf("%s ended by itself; the end of %s:\n%s", c.Name, c.Log, process.TailFile(c.Log, logLines))
		default:
			again := map[process.State]string{process.Stopped: "start", process.Paused: "resume"}[c.State]
			return fmt.Errorf("%s is %s; to go on: go run ./playground/cmd/playground --name %s component %s %s",
				c.Name, c.State, f.status.Name, again, c.Name)
		}
	}
	return nil
}

// checkUp asks the daemon how its components are.
func (f *fleet) checkUp(ctx context.Context) error {
	status, err := f.daemon.Status(ctx)
	if err != nil {
		return fmt.Errorf("the playground went away: %w", err)
	}
	f.status = status
	return f.healthy()
}

// giveUp ends what this run started; a playground that was there before stays.
func (f *fleet) giveUp(err error) error {
	if !f.ours {
		return fmt.Errorf("%w\n(the playground was up before and stays up; make down removes it)", err)
	}
	return errors.Join(err, f.daemon.Down())
}

func (f *fleet) connect() (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("fill the scheme: %w", err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.cluster(playground.ManagerName).Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the manager's kubeconfig: %w", err)
	}
	config.QPS = -1 // no limit: the API server is ours
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client for the manager: %w", err)
	}
	return c, nil
}

func (f *fleet) cluster(name string) playground.ClusterStatus {
	for _, c := range f.status.Clusters {
		if c.Name == name {
			return c
		}
	}
	return playground.ClusterStatus{}
}

func (f *fleet) installQueue(ctx context.Context, t terms) error {
	return f.daemon.InstallQueues(ctx, playground.QueueOptions{
		Namespace: namespace, LocalQueue: queue, Check: check, Manager: t.manager, Worker: t.worker, SetQuota: true,
	})
}

func (f *fleet) lookAround(t terms) string {
	text := "\nThe clusters stay up. To look around:\n\n"
	if _, err := exec.LookPath("kubectl"); err == nil {
		text += fmt.Sprintf("  export KUBECONFIG=%s\n  kubectl", f.cluster(playground.ManagerName).Kubeconfig)
	} else {
		text += "  " + f.ownKubectl()
	}
	text += fmt.Sprintf(" get %s -n %s\n\n", t.resources, namespace)
	text += t.note
	text += "Jobs of your own: examples/README.md. A worker's kubeconfig, logs, faults: docs/playground.md.\n"
	return text + "make down removes everything.\n"
}

// ownKubectl is for machines that have none.
func (f *fleet) ownKubectl() string {
	const command = "go run ./playground/cmd/playground kubectl"
	if f.status.Name == playground.DefaultName {
		return command
	}
	return command + " --name " + f.status.Name
}

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
