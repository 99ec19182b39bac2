package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/process"
)

const (
	lookEvery = 250 * time.Millisecond
	// checkEvery is how often the components are looked after while jobs run.
	checkEvery = 2 * time.Second
	// stuckAfter is how long nothing may change; the samples change every few seconds.
	stuckAfter = 2 * time.Minute
)

// watcher shows the jobs until all are finished.
type watcher struct {
	options              Options
	fleet                *fleet
	names                []string
	began                time.Time
	rows                 []Row
	changedAt, checkedAt time.Time
}

func watch(ctx context.Context, o Options, f *fleet, names []string) ([]Row, error) {
	now := time.Now()
	w := &watcher{options: o, fleet: f, names: names, began: now, changedAt: now, checkedAt: now}
	for {
		over, err := w.step(ctx)
		if err != nil || over {
			return w.rows, err
		}
		if err := pause(ctx, lookEvery); err != nil {
			return w.rows, err
		}
	}
}

// step looks once, and shows what it sees.
func (w *watcher) step(ctx context.Context) (over bool, err error) {
	rows, settled, err := w.fleet.rows(ctx, w.names)
	if err != nil {
		return false, w.blame(ctx, err)
	}
	now := time.Now()
	lines := changes(w.rows, rows, now.Sub(w.began).Seconds())
	if len(lines) > 0 {
		w.changedAt = now
	}
	w.rows = rows
	if err := w.draw(lines, now); err != nil {
		return false, fmt.Errorf("write the table: %w", err)
	}
	if settled {
		return true, nil
	}
	if now.Sub(w.checkedAt) >= checkEvery {
		w.checkedAt = now
		if err := w.fleet.checkUp(ctx); err != nil {
			return false, err
		}
	}
	if now.Sub(w.changedAt) > stuckAfter {
		return false, w.stuck()
	}
	return false, nil
}

func (w *watcher) draw(lines []string, now time.Time) error {
	if w.options.Screen != nil {
		return w.options.Screen.Draw(table(w.rows, now.Sub(w.began).Seconds()))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w.options.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// blame prefers the component that is down to the request that failed for it.
func (w *watcher) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if down := w.fleet.checkUp(ctx); down != nil {
		return down
	}
	return err
}

// stuck shows the log of the one that most likely knows why.
func (w *watcher) stuck() error {
	var waiting []string
	for _, r := range w.rows {
		if !r.Over() {
			waiting = append(waiting, fmt.Sprintf("%s is %s: %s", r.Job, r.State, r.Why))
		}
	}
	log := ""
	for _, c := range w.fleet.status.Components {
		if c.Name == ferryComponent {
			log = fmt.Sprintf("the end of %s:\n%s", c.Log, process.TailFile(c.Log, logLines))
		}
	}
	return fmt.Errorf("nothing has changed for %s:\n%s\n%s", stuckAfter, strings.Join(waiting, "\n"), log)
}

// rows reads the jobs as the manager shows them, in the order of names. Settled: all are over, and so are their Workloads.
func (f *fleet) rows(ctx context.Context, names []string) (rows []Row, settled bool, err error) {
	var jobs batchv1.JobList
	if err := f.manager.List(ctx, &jobs, client.InNamespace(namespace), client.HasLabels{demoLabel}); err != nil {
		return nil, false, fmt.Errorf("list the jobs on the manager: %w", err)
	}
	var workloads kueue.WorkloadList
	if err := f.manager.List(ctx, &workloads, client.InNamespace(namespace)); err != nil {
		return nil, false, fmt.Errorf("list the Workloads on the manager: %w", err)
	}
	byName := map[string]*batchv1.Job{}
	for i := range jobs.Items {
		byName[jobs.Items[i].Name] = &jobs.Items[i]
	}
	settled = true
	for _, name := range names {
		job := byName[name]
		if job == nil {
			return nil, false, fmt.Errorf("job %s/%s has been deleted", namespace, name)
		}
		wl := workloadOf(job, workloads.Items)
		r := rowOf(job, wl)
		settled = settled && r.Over() && wl != nil && finished(wl)
		rows = append(rows, r)
	}
	return rows, settled, nil
}

func workloadOf(job *batchv1.Job, workloads []kueue.Workload) *kueue.Workload {
	for i := range workloads {
		if metav1.IsControlledBy(&workloads[i], job) {
			return &workloads[i]
		}
	}
	return nil
}
