// Package demo shows Ferry at work: it starts a playground, submits sample Jobs and shows where they run and why they wait.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ferry.dev/ferry/playground"
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
	// Operators are job operators to run on the workers, as in playground.Options.
	Operators []string
	// Out gets all that is to be seen.
	Out io.Writer
	// Screen is set when Out is a terminal that the table can be redrawn on. nil prints a line per change.
	Screen *Screen
}

// Run is the whole demo: it returns once all sample Jobs are finished. The clusters stay up then, and when ctx ends
// while the jobs run. When something fails, a playground that Run started is taken down; the error names the
// component at fault, if one is, and shows the end of its log.
func Run(ctx context.Context, o Options) error {
	if o.Name == "" {
		o.Name = playground.DefaultName
	}
	f, err := attach(ctx, o)
	if err != nil {
		return err
	}
	err = show(ctx, o, f)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && f.ready:
		return errors.New("stopped watching; the clusters stay up, and the jobs go on (make down ends all)")
	default:
		return f.giveUp(err)
	}
}

// show runs the jobs on a fleet that is up.
func show(ctx context.Context, o Options, f *fleet) error {
	begin := time.Now()
	if err := f.installQueue(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "\nqueue %s/%s: quota for %s CPUs on the manager, %s on each worker\n", namespace, queue, managerQuota.CPU, workerQuota.CPU)
	if err := f.removeOldJobs(ctx, o.Out); err != nil {
		return err
	}
	names, err := f.submit(ctx)
	if err != nil {
		return err
	}
	f.ready = true
	fmt.Fprintf(o.Out, "%d jobs submitted to the manager\n\n", len(names))
	rows, err := watch(ctx, o, f, names)
	if err != nil {
		return err
	}
	rides, err := f.rides(rows, begin)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	_, err = fmt.Fprint(o.Out, summary(rows, rides)+f.lookAround())
	return err
}
