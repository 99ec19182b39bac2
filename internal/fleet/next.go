package fleet

import (
	"time"
)

// phase is where the connection to one worker stands.
type phase int

const (
	phaseIdle       phase = iota // heard of, nothing to connect with
	phaseConnecting              // an attempt is under way
	phaseConnected
	phaseSuspect // connected, some probes failed
	phaseWaiting // lost, the next attempt is due at the wake
	phaseUnusable
	phaseRemoved
)

func (p phase) String() string {
	return [...]string{"Idle", "Connecting", "Connected", "Suspect", "Waiting", "Unusable", "Removed"}[p]
}

type eventKind int

const (
	eventSet      eventKind = iota // new credentials, or the same ones after they were unusable
	eventUnusable                  // the credentials cannot be used
	eventLeave                     // the worker is to be withdrawn from, or is not any more
	eventRemove
	eventSynced        // the attempt succeeded: its caches are synced
	eventConnectFailed // the attempt failed
	eventProbeOK
	eventProbeFailed
	eventBroken  // the connection reports that it cannot go on
	eventTrouble // a watch failed: probe soon, with a list
	eventWake    // the time asked for by an effect has come
)

// event is an input of next. Events about a connection carry the session they are about; those of an earlier session
// are ignored.
type event struct {
	kind        eventKind
	session     uint64
	fingerprint string
	renews      bool   // of eventSet: the credentials are for the same server, reached in the same way
	leaving     bool   // of eventLeave
	reason      string // of eventUnusable
	message     string
	deep        bool // the probe listed
	fatal       bool // the failure is an answer that will not change by asking again: 401, 403, 404
}

type effectKind int

const (
	effectConnect effectKind = iota // start an attempt for state.session
	effectClose                     // end the attempt or connection, whichever there is
	effectProbe                     // probe the connection once
	effectWake                      // send eventWake after a time; replaces an earlier wake
	effectNotify                    // tell of the new status
	effectLoss                      // count a loss
	effectRenew                     // let the connection log in with the new credentials
)

type effect struct {
	kind  effectKind
	after time.Duration // of effectWake
	deep  bool          // of effectProbe
}

// state is everything that decides what happens next with one worker.
type state struct {
	phase       phase
	session     uint64 // of the current attempt or connection; rises with each attempt
	fingerprint string // of the credentials in use; empty while there are none
	lostSince   time.Time
	leaving     bool      // is to be withdrawn from
	seen        bool      // was connected at some time
	failingFrom time.Time // of the first failed probe, while Suspect
	probing     bool      // a probe is under way
	deep        bool      // the next probe lists
	failures    int       // probes failed in a row
	attempts    int       // attempts to connect failed in a row
	reason      string
	message     string
}

// rules are the constants of next.
type rules struct {
	threshold int
	interval  time.Duration
	backoff   Backoff
}

// newState is the state of a worker that the fleet hears of at now.
func newState(now time.Time) state {
	return state{
		phase: phaseIdle, lostSince: now,
		reason: ReasonClientConnectionFailed, message: "Not connected yet",
	}
}

// transitions says, for each event, what follows. It is the whole table: an event that does not apply in a phase
// leaves the state as it is.
var transitions = map[eventKind]func(rules, state, event, time.Time) (state, []effect){
	eventSet:           onSet,
	eventUnusable:      onUnusable,
	eventLeave:         onLeave,
	eventRemove:        onRemove,
	eventSynced:        onSynced,
	eventConnectFailed: onConnectFailed,
	eventProbeOK:       onProbeOK,
	eventProbeFailed:   onProbeFailed,
	eventBroken:        onBroken,
	eventTrouble:       onTrouble,
	eventWake:          onWake,
}

// next is the life of a connection: Idle → Connecting → Connected ⇄ Suspect → Waiting → Connecting …, with Unusable
// and Removed reachable from everywhere.
func next(r rules, s state, e event, now time.Time) (state, []effect) {
	if s.phase == phaseRemoved || (aboutSession(e.kind) && e.session != s.session) {
		return s, nil
	}
	return transitions[e.kind](r, s, e, now)
}

func aboutSession(kind eventKind) bool {
	switch kind {
	case eventSynced, eventConnectFailed, eventProbeOK, eventProbeFailed, eventBroken, eventTrouble:
		return true
	}
	return false
}

func live(s state) bool { return s.phase == phaseConnected || s.phase == phaseSuspect }

func onSet(r rules, s state, e event, now time.Time) (state, []effect) {
	if e.fingerprint == s.fingerprint && s.phase != phaseUnusable && s.phase != phaseIdle {
		return s, nil
	}
	if e.renews && live(s) {
		return onRenewal(r, s, e, now)
	}
	effects := ending(s)
	s = disconnected(s, now)
	s.fingerprint = e.fingerprint
	s.attempts = 0
	s.phase = phaseConnecting
	s.session++
	s.reason, s.message = ReasonClientConnectionFailed, "Connecting"
	return s, append(effects, effect{kind: effectConnect}, effect{kind: effectNotify})
}

// onRenewal keeps the connection, and asks at once whether the new credentials work. If not it is lost as any other.
func onRenewal(r rules, s state, e event, now time.Time) (state, []effect) {
	s.fingerprint = e.fingerprint
	s, effects := onTrouble(r, s, e, now)
	return s, append([]effect{{kind: effectRenew}}, effects...)
}

func onUnusable(_ rules, s state, e event, now time.Time) (state, []effect) {
	if s.phase == phaseUnusable && s.reason == e.reason && s.message == e.message {
		return s, nil
	}
	effects := ending(s)
	s = disconnected(s, now)
	s.phase, s.fingerprint, s.attempts = phaseUnusable, "", 0
	s.reason, s.message = e.reason, e.message
	return s, append(effects, effect{kind: effectNotify})
}

func onLeave(_ rules, s state, e event, _ time.Time) (state, []effect) {
	if s.leaving == e.leaving {
		return s, nil
	}
	s.leaving = e.leaving
	return s, []effect{{kind: effectNotify}}
}

func onRemove(_ rules, s state, _ event, _ time.Time) (state, []effect) {
	s.phase = phaseRemoved
	return s, []effect{{kind: effectClose}, {kind: effectNotify}}
}

func onSynced(r rules, s state, _ event, _ time.Time) (state, []effect) {
	if s.phase != phaseConnecting {
		return s, nil
	}
	s.phase, s.seen = phaseConnected, true
	s.lostSince = time.Time{}
	s.attempts = 0
	s.reason, s.message = ReasonActive, "Connected"
	return s, []effect{{kind: effectWake, after: r.interval}, {kind: effectNotify}}
}

func onConnectFailed(r rules, s state, e event, now time.Time) (state, []effect) {
	if s.phase != phaseConnecting {
		return s, nil
	}
	return lose(r, s, e.message, now)
}

func onProbeOK(r rules, s state, e event, _ time.Time) (state, []effect) {
	if !live(s) {
		return s, nil
	}
	if s.deep && !e.deep {
		s.probing = true
		return s, []effect{{kind: effectProbe, deep: true}} // trouble came in between: this answer does not settle it
	}
	recovered := s.phase == phaseSuspect
	s.phase, s.probing, s.deep, s.failures, s.failingFrom = phaseConnected, false, false, 0, time.Time{}
	s.reason, s.message = ReasonActive, "Connected"
	effects := []effect{{kind: effectWake, after: r.interval}}
	if recovered {
		effects = append(effects, effect{kind: effectNotify})
	}
	return s, effects
}

func onProbeFailed(r rules, s state, e event, now time.Time) (state, []effect) {
	if !live(s) {
		return s, nil
	}
	s.probing = false
	s.failures++
	if s.failingFrom.IsZero() {
		s.failingFrom = now
	}
	if e.fatal || s.failures >= r.threshold {
		return lose(r, s, e.message, now)
	}
	effects := []effect{{kind: effectWake, after: r.interval}}
	if s.phase == phaseConnected {
		s.phase = phaseSuspect
		effects = append(effects, effect{kind: effectNotify})
	}
	s.message = "Connected, but the last probe failed: " + e.message
	return s, effects
}

func onBroken(r rules, s state, e event, now time.Time) (state, []effect) {
	if !live(s) {
		return s, nil
	}
	return lose(r, s, e.message, now)
}

func onTrouble(_ rules, s state, _ event, _ time.Time) (state, []effect) {
	if !live(s) || s.deep {
		return s, nil
	}
	s.deep = true
	if s.probing || s.phase == phaseSuspect {
		return s, nil // the next probe is near, and asking more often would only shorten the patience
	}
	s.probing = true
	return s, []effect{{kind: effectProbe, deep: true}}
}

func onWake(_ rules, s state, _ event, _ time.Time) (state, []effect) {
	switch {
	case live(s) && !s.probing:
		s.probing = true
		return s, []effect{{kind: effectProbe, deep: s.deep}}
	case s.phase == phaseWaiting:
		s.phase = phaseConnecting
		s.session++
		return s, []effect{{kind: effectConnect}}
	}
	return s, nil
}

// lose ends the attempt or connection and waits before the next attempt.
func lose(r rules, s state, message string, now time.Time) (state, []effect) {
	effects := ending(s)
	s = disconnected(s, now)
	s.phase = phaseWaiting
	s.attempts++
	s.reason, s.message = ReasonClientConnectionFailed, message
	return s, append(effects, effect{kind: effectWake, after: r.backoff.after(s.attempts)}, effect{kind: effectNotify})
}

// ending lists what it takes to leave the present phase.
func ending(s state) []effect {
	switch s.phase {
	case phaseConnected, phaseSuspect:
		return []effect{{kind: effectClose}, {kind: effectLoss}}
	case phaseConnecting:
		return []effect{{kind: effectClose}}
	}
	return nil
}

// disconnected forgets the connection and keeps or begins the loss.
func disconnected(s state, now time.Time) state {
	if s.lostSince.IsZero() {
		s.lostSince = now
		if !s.failingFrom.IsZero() {
			s.lostSince = s.failingFrom
		}
	}
	s.failingFrom, s.failures, s.probing, s.deep = time.Time{}, 0, false, false
	return s
}

// after is the wait after so many failed attempts in a row.
func (b Backoff) after(attempts int) time.Duration {
	wait := b.Initial
	for range attempts - 1 {
		if wait >= b.Max {
			break
		}
		wait *= 2
	}
	return min(wait, b.Max)
}

// statusOf is what others see of a state.
func statusOf(s state) Status {
	status := Status{LostSince: s.lostSince, Seen: s.seen, Leaving: s.leaving, Reason: s.reason, Message: s.message}
	switch s.phase {
	case phaseIdle:
		status.Reach = Connecting
	case phaseConnecting:
		// Attempts after a failure stay Lost for others, else each of them would look like news.
		status.Reach = Connecting
		if s.attempts > 0 {
			status.Reach = Lost
		}
	case phaseConnected:
		status.Reach = Connected
	case phaseSuspect:
		status.Reach = Suspect
	case phaseWaiting:
		status.Reach = Lost
	case phaseUnusable:
		status.Reach = Unusable
	case phaseRemoved:
		status = Status{Reach: Unknown, Seen: s.seen}
	}
	return status
}
