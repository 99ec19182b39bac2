package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ferry.dev/ferry/playground/process"
)

// checkEvery is how often the components are looked after while jobs run.
const checkEvery = 2 * time.Second

// watcher shows the jobs until all are over.
type watcher struct {
	options              Options
	fleet                *fleet
	act                  act
	terms                terms
	left                 int // to submit
	began                time.Time
	rows                 []Row
	changedAt, checkedAt time.Time
}

func watch(ctx context.Context, o Options, f *fleet, a act, t terms, left int) ([]Row, error) {
	now := time.Now()
	w := &watcher{options: o, fleet: f, act: a, terms: t, left: left, began: now, changedAt: now, checkedAt: now}
	for {
		over, err := w.step(ctx)
		if err != nil || over {
			return w.rows, err
		}
		if err := pause(ctx, w.terms.lookEvery); err != nil {
			return w.rows, err
		}
	}
}

// step looks once, and shows what it sees.
func (w *watcher) step(ctx context.Context) (over bool, err error) {
	rows, settled, err := w.act.look(ctx)
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
	if w.left > 0 {
		if _, w.left, err = w.act.submit(ctx); err != nil {
			return false, w.blame(ctx, err)
		}
	} else if settled {
		return true, nil
	}
	if now.Sub(w.checkedAt) >= checkEvery {
		w.checkedAt = now
		if err := w.fleet.checkUp(ctx); err != nil {
			return false, err
		}
	}
	switch {
	case now.Sub(w.changedAt) > w.terms.stuckAfter:
		return false, w.stuck(fmt.Sprintf("nothing has changed for %s", w.terms.stuckAfter))
	case now.Sub(w.began) > w.terms.within:
		return false, w.stuck(fmt.Sprintf("not all is done after %s", w.terms.within))
	}
	return false, nil
}

func (w *watcher) draw(lines []string, now time.Time) error {
	if w.options.Screen != nil {
		return w.options.Screen.Draw(table(w.terms.progress, w.rows, now.Sub(w.began).Seconds()))
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

// stuck names what is not done, and shows the log of the one that most likely knows why.
func (w *watcher) stuck(what string) error {
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
	return fmt.Errorf("%s:\n%s\n%s", what, strings.Join(waiting, "\n"), log)
}
