package fleet

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// connect makes a connection and keeps it until ctx ends. It runs beside the owner, so that new credentials or a
// removal can end an attempt that hangs.
func (w *worker) connect(ctx context.Context, s step) {
	bounded, give := context.WithCancelCause(ctx)
	defer give(nil)
	late := time.AfterFunc(w.options.SyncTimeout, func() { give(&noAnswerError{after: w.options.SyncTimeout}) })
	signals := w.signalsFor(s)
	signals.moved = func() { late.Reset(w.options.SyncTimeout) }
	made, err := w.options.connect(bounded, target{
		worker: w.name, config: s.config, limiter: w.limiter, options: w.options, signals: signals,
	})
	late.Stop()
	if err != nil {
		w.handle(event{kind: eventConnectFailed, session: s.session, message: describe(s.config, err)})
		return
	}
	defer made.close()
	w.established(s.session, made)
	<-ctx.Done()
}

// signalsFor ties the signals of a connection to its session.
func (w *worker) signalsFor(s step) signals {
	return signals{
		broken: func(err error) {
			w.handle(event{kind: eventBroken, session: s.session, message: describe(s.config, err)})
		},
		trouble: func() { w.handle(event{kind: eventTrouble, session: s.session}) },
		kinds:   func() { w.notifyKinds(s.session) },
	}
}

// notifyKinds tells that the kinds served on a live connection changed.
func (w *worker) notifyKinds(session uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if live(w.state) && w.state.session == session {
		w.pushLocked(effect{kind: effectNotify})
	}
}

// probe asks once whether the worker still answers.
func (w *worker) probe(ctx context.Context, s step) {
	err := within(ctx, w.options.ProbeTimeout, func(ctx context.Context) error { return s.link.probe(ctx, s.deep) })
	if err == nil {
		w.handle(event{kind: eventProbeOK, session: s.session, deep: s.deep})
		return
	}
	w.handle(event{
		kind: eventProbeFailed, session: s.session, message: describe(s.config, err), deep: s.deep,
		// What the credentials of before are answered says nothing about those that came meanwhile.
		fatal: refused(err) && !w.isRenewed(s),
	})
}

// refused tells whether an error is an answer that asking again will not change: the credentials do not work, a
// permission is missing, or Kueue is not there.
func refused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}
