// Package demo shows Ferry at work: it starts a playground, submits sample jobs and shows where they run and why they wait.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/build"
)

const (
	namespace = "team"
	queue     = "team"
	// check is named as in the examples, so that both describe the same queue.
	check = "multikueue"
)

// Options say where and how the demo runs.
type Options struct {
	// Name of the playground; one that runs already is used. Default "demo".
	Name string
	// Kinds are the kinds of jobs to submit one sample of, with their operators; AllKinds stands for all. None: several
	// batch Jobs that compete for the quota.
	Kinds []string
	// Operators are further job operators to run on the workers, as in playground.Options.
	Operators []string
	// Out gets all that is to be seen.
	Out io.Writer
	// Screen is set when Out is a terminal that the table can be redrawn on. nil prints a line per change.
	Screen *Screen
}

// terms are what a demo needs of the playground, and how it is shown.
type terms struct {
	operators, frameworks []string
	runFor                time.Duration // of pods that end, where nothing else is said; 0: the playground's default
	manager, worker       playground.Quota
	progress              string // what the table's column is called
	resources             string // for kubectl get
	note                  string // what else to say at the end; may be empty
	lookEvery             time.Duration
	stuckAfter            time.Duration // how long nothing may change
	within                time.Duration // how long all may take
}

// act is what a demo runs on the manager.
type act interface {
	// clear removes what an earlier demo left and tells how many objects that were.
	clear(ctx context.Context) (int, error)
	// submit creates the next samples and tells how many were created so far, and how many are left for the next call.
	submit(ctx context.Context) (created, left int, err error)
	// look tells how all is now; settled once there is nothing more to wait for of what was submitted.
	look(ctx context.Context) (rows []Row, settled bool, err error)
	// ways are those of the rows last seen, by job.
	ways() map[string][]way
}

// Run is the whole demo: it returns once all samples are finished, or ready if they serve. The clusters stay up then,
// and when ctx ends while they run. When something fails, a playground that Run started is taken down; the error names
// the component at fault, if one is, and shows the end of its log.
func Run(ctx context.Context, o Options) error {
	if o.Name == "" {
		o.Name = playground.DefaultName
	}
	chosen, err := choose(o.Kinds)
	if err != nil {
		return err
	}
	t := jobTerms
	if len(chosen) > 0 {
		t = kindTerms(chosen)
	}
	t.operators = slices.Concat(t.operators, o.Operators)
	f, err := attach(ctx, o, t)
	if err != nil {
		return err
	}
	a, err := f.act(chosen)
	if err == nil {
		err = show(ctx, o, f, a, t)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && f.ready:
		return errors.New("stopped watching; the clusters stay up, and the jobs go on (make down ends all)")
	default:
		return f.giveUp(err)
	}
}

// act is the demo of the chosen kinds, or the plain one when there are none.
func (f *fleet) act(chosen []kind) (act, error) {
	if len(chosen) == 0 {
		return &jobs{manager: f.manager}, nil
	}
	root, err := build.FindRoot(".")
	if err != nil {
		return nil, err
	}
	return newKinds(f.manager, root, chosen)
}

// show runs the jobs on a fleet that is up.
func show(ctx context.Context, o Options, f *fleet, a act, t terms) error {
	begin := time.Now()
	if err := f.installQueue(ctx, t); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "\nqueue %s/%s: quota for %s CPUs on the manager, %s on each worker\n", namespace, queue, t.manager.CPU, t.worker.CPU)
	removed, err := a.clear(ctx)
	if err != nil {
		return fmt.Errorf("remove an earlier demo's jobs: %w", err)
	}
	if removed > 0 {
		fmt.Fprintf(o.Out, "%d jobs of an earlier demo removed\n", removed)
	}
	created, left, err := a.submit(ctx)
	if err != nil {
		return err
	}
	f.ready = true
	fmt.Fprintf(o.Out, "%d jobs submitted to the manager%s\n\n", created, map[bool]string{true: fmt.Sprintf(", %d follow", left)}[left > 0])
	rows, err := watch(ctx, o, f, a, t, left)
	if err != nil {
		return err
	}
	rides, missing, err := f.rides(a.ways(), begin)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	fmt.Fprint(o.Out, summary(rows, rides))
	for _, m := range missing {
		fmt.Fprintln(o.Out, m)
	}
	_, err = fmt.Fprint(o.Out, f.lookAround(t))
	return err
}
