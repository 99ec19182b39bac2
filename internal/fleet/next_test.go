package fleet

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

var (
	testRules = rules{threshold: 3, interval: 5 * time.Second, backoff: Backoff{Initial: time.Second, Max: 30 * time.Second}}
	epoch     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// history feeds events to next, one second apart.
func history(events ...event) (state, []effect) {
	s := newState(epoch)
	var effects []effect
	for i, e := range events {
		if aboutSession(e.kind) && e.session == 0 {
			e.session = s.session
		}
		s, effects = next(testRules, s, e, epoch.Add(time.Duration(i+1)*time.Second))
	}
	return s, effects
}

func set(fingerprint string) event { return event{kind: eventSet, fingerprint: fingerprint} }
func renewal(fingerprint string) event {
	return event{kind: eventSet, fingerprint: fingerprint, renews: true}
}
func on(kind eventKind) event { return event{kind: kind, message: "because"} }

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

var never = time.Time{}

// lives are short histories of a connection, and how it stands after the last event.
var lives = map[string]struct {
	events  []event
	reach   Reach
	since   time.Time
	effects []effectKind
}{
	"heard of": {nil, Connecting, epoch, nil},
	"credentials come": {
		[]event{set("a")}, Connecting, epoch, []effectKind{effectConnect, effectNotify}},
	"connected": {
		[]event{set("a"), on(eventSynced)}, Connected, never, []effectKind{effectWake, effectNotify}},
	"the same credentials again": {
		[]event{set("a"), on(eventSynced), set("a")}, Connected, never, nil},
	"new credentials reconnect, and the loss begins": {
		[]event{set("a"), on(eventSynced), set("b")}, Connecting, at(3),
		[]effectKind{effectClose, effectLoss, effectConnect, effectNotify}},
	"a new login for the same server keeps the connection, and is tried": {
		[]event{set("a"), on(eventSynced), renewal("b")}, Connected, never, []effectKind{effectRenew, effectProbe}},
	"and lost when it is refused": {
		[]event{set("a"), on(eventSynced), renewal("b"), {kind: eventProbeFailed, fatal: true, deep: true}}, Lost, at(4),
		[]effectKind{effectClose, effectLoss, effectWake, effectNotify}},
	"a new login while suspect waits for the next probe": {
		[]event{set("a"), on(eventSynced), on(eventProbeFailed), renewal("b")}, Suspect, never, []effectKind{effectRenew}},
	"a new login cannot help an attempt with the old one": {
		[]event{set("a"), renewal("b")}, Connecting, epoch, []effectKind{effectClose, effectConnect, effectNotify}},
	"the same login again": {
		[]event{set("a"), on(eventSynced), renewal("a")}, Connected, never, nil},
	"an attempt fails": {
		[]event{set("a"), on(eventConnectFailed)}, Lost, epoch, []effectKind{effectClose, effectWake, effectNotify}},
	"the next attempt stays Lost for others": {
		[]event{set("a"), on(eventConnectFailed), on(eventWake)}, Lost, epoch, []effectKind{effectConnect}},
	"new credentials do not move the loss": {
		[]event{set("a"), on(eventConnectFailed), set("b"), on(eventConnectFailed)}, Lost, epoch,
		[]effectKind{effectClose, effectWake, effectNotify}},
	"one failed probe": {
		[]event{set("a"), on(eventSynced), on(eventProbeFailed)}, Suspect, never, []effectKind{effectWake, effectNotify}},
	"two failed probes": {
		[]event{set("a"), on(eventSynced), on(eventProbeFailed), on(eventProbeFailed)}, Suspect, never, []effectKind{effectWake}},
	"three failed probes: lost since the first": {
		[]event{set("a"), on(eventSynced), on(eventProbeFailed), on(eventProbeFailed), on(eventProbeFailed)}, Lost, at(3),
		[]effectKind{effectClose, effectLoss, effectWake, effectNotify}},
	"a good probe clears the suspicion": {
		[]event{set("a"), on(eventSynced), on(eventProbeFailed), on(eventProbeOK)}, Connected, never,
		[]effectKind{effectWake, effectNotify}},
	"refused: lost at once": {
		[]event{set("a"), on(eventSynced), {kind: eventProbeFailed, fatal: true}}, Lost, at(3),
		[]effectKind{effectClose, effectLoss, effectWake, effectNotify}},
	"broken: lost at once": {
		[]event{set("a"), on(eventSynced), on(eventBroken)}, Lost, at(3),
		[]effectKind{effectClose, effectLoss, effectWake, effectNotify}},
	"trouble asks for a probe": {
		[]event{set("a"), on(eventSynced), on(eventTrouble)}, Connected, never, []effectKind{effectProbe}},
	"trouble during a probe: its answer does not count": {
		[]event{set("a"), on(eventSynced), on(eventWake), on(eventTrouble), on(eventProbeOK)}, Connected, never,
		[]effectKind{effectProbe}},
	"trouble while suspect: an answer without a list does not settle it, and the list is asked for": {
		[]event{set("a"), on(eventSynced), on(eventProbeFailed), on(eventTrouble), on(eventProbeOK), on(eventWake)}, Suspect, never,
		nil},
	"trouble settled": {
		[]event{set("a"), on(eventSynced), on(eventTrouble), {kind: eventProbeOK, deep: true}}, Connected, never,
		[]effectKind{effectWake}},
	"unusable while connected": {
		[]event{set("a"), on(eventSynced), on(eventUnusable)}, Unusable, at(3),
		[]effectKind{effectClose, effectLoss, effectNotify}},
	"unusable keeps the loss": {
		[]event{set("a"), on(eventConnectFailed), on(eventUnusable)}, Unusable, epoch, []effectKind{effectNotify}},
	"unusable again is no news": {
		[]event{on(eventUnusable), on(eventUnusable)}, Unusable, epoch, nil},
	"the same credentials after they were unusable": {
		[]event{set("a"), on(eventUnusable), set("a")}, Connecting, epoch, []effectKind{effectConnect, effectNotify}},
	"an attempt that was given up cannot connect": {
		[]event{set("a"), on(eventUnusable), on(eventSynced)}, Unusable, epoch, nil},
	"an answer of an earlier session": {
		[]event{set("a"), set("b"), {kind: eventSynced, session: 1}}, Connecting, epoch, nil},
	"to be withdrawn from": {
		[]event{set("a"), on(eventSynced), {kind: eventLeave, leaving: true}}, Connected, never, []effectKind{effectNotify}},
	"to be withdrawn from is told once": {
		[]event{set("a"), {kind: eventLeave, leaving: true}, {kind: eventLeave, leaving: true}}, Connecting, epoch, nil},
	"removed": {
		[]event{set("a"), on(eventSynced), on(eventRemove)}, Unknown, never, []effectKind{effectClose, effectNotify}},
	"removed for good": {
		[]event{on(eventRemove), set("a")}, Unknown, never, nil},
}

func TestNext(t *testing.T) {
	for name, test := range lives {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, effects := history(test.events...)
			status := statusOf(s)
			g.Expect(status.Reach).To(Equal(test.reach))
			g.Expect(status.LostSince).To(Equal(test.since))
			var kinds []effectKind
			for _, e := range effects {
				kinds = append(kinds, e.kind)
			}
			g.Expect(kinds).To(Equal(test.effects))
		})
	}
}

func TestEveryEventHasATransition(t *testing.T) {
	for kind := eventSet; kind <= eventWake; kind++ {
		if transitions[kind] == nil {
			t.Errorf("event %d has no transition", kind)
		}
	}
}

func TestBackoff(t *testing.T) {
	g := NewWithT(t)
	b := Backoff{Initial: time.Second, Max: 30 * time.Second}
	var waits []time.Duration
	for attempts := 1; attempts <= 7; attempts++ {
		waits = append(waits, b.after(attempts)/time.Second)
	}
	g.Expect(waits).To(Equal([]time.Duration{1, 2, 4, 8, 16, 30, 30}))
	g.Expect(b.after(1_000_000)).To(Equal(b.Max))
}

func anyEvent(t *rapid.T, s state) event {
	e := event{
		kind:        rapid.SampledFrom([]eventKind{eventSet, eventSet, eventUnusable, eventSynced, eventSynced, eventConnectFailed, eventProbeOK, eventProbeFailed, eventProbeFailed, eventBroken, eventTrouble, eventWake, eventWake}).Draw(t, "kind"),
		fingerprint: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "fingerprint"),
		reason:      ReasonBadKubeConfig,
		message:     rapid.SampledFrom([]string{"x", "y"}).Draw(t, "message"),
		deep:        rapid.Bool().Draw(t, "deep"),
		renews:      rapid.Bool().Draw(t, "renews"),
		fatal:       rapid.IntRange(0, 4).Draw(t, "fatal") == 0,
		session:     s.session,
	}
	if s.session > 0 && rapid.IntRange(0, 5).Draw(t, "stale") == 0 {
		e.session--
	}
	return e
}

// TestNextProperties walks random lives and checks every step.
func TestNextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := newState(epoch), epoch
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			e := anyEvent(t, s)
			before := s
			after, effects := next(testRules, s, e, now)
			checkLoss(t, before, after, now)
			checkConnected(t, before, after, e)
			checkBackoff(t, before, after, e, effects)
			checkProgress(t, after, effects)
			s = after
		}
	})
}

// checkLoss: a loss has a beginning that only a connection ends, and it is never in the future.
func checkLoss(t *rapid.T, before, after state, now time.Time) {
	b, a := statusOf(before), statusOf(after)
	if a.Usable() != a.LostSince.IsZero() {
		t.Fatalf("%s with LostSince %v", a.Reach, a.LostSince)
	}
	if !b.LostSince.IsZero() && !a.Usable() && !a.LostSince.Equal(b.LostSince) {
		t.Fatalf("LostSince moved from %v to %v", b.LostSince, a.LostSince)
	}
	if a.LostSince.After(now) {
		t.Fatalf("LostSince %v is after now %v", a.LostSince, now)
	}
}

// checkConnected: only a synced attempt of this session connects; a refused or broken connection is never kept.
func checkConnected(t *rapid.T, before, after state, e event) {
	if live(after) && !live(before) && (e.kind != eventSynced || e.session != before.session) {
		t.Fatalf("connected by event %d", e.kind)
	}
	current := e.session == before.session
	if live(after) && current && ((e.kind == eventProbeFailed && e.fatal) || e.kind == eventBroken) {
		t.Fatalf("still %s after event %d", after.phase, e.kind)
	}
	if live(after) && after.failures >= testRules.threshold {
		t.Fatalf("still %s after %d failures", after.phase, after.failures)
	}
	if (e.kind == eventUnusable) && (after.phase != phaseUnusable) {
		t.Fatalf("%s with unusable credentials", after.phase)
	}
}

// checkBackoff: bounded; begins anew with new credentials; untouched by anything but the outcome of attempts.
func checkBackoff(t *rapid.T, before, after state, e event, effects []effect) {
	for _, ef := range effects {
		if ef.kind == effectWake && (ef.after <= 0 || ef.after > testRules.backoff.Max) {
			t.Fatalf("wake after %v", ef.after)
		}
	}
	switch e.kind {
	case eventSet:
		if e.fingerprint != before.fingerprint && after.attempts != 0 {
			t.Fatalf("new credentials start with %d attempts", after.attempts)
		}
		if e.fingerprint == before.fingerprint && before.phase == phaseWaiting && (after != before || effects != nil) {
			t.Fatalf("the same credentials disturbed the back-off")
		}
	case eventProbeOK, eventTrouble, eventWake:
		if after.attempts != before.attempts {
			t.Fatalf("event %d changed the attempts", e.kind)
		}
	}
}

// checkProgress: whoever waits has asked to be woken, and whoever is connecting has an attempt under way.
func checkProgress(t *rapid.T, after state, effects []effect) {
	has := func(kind effectKind) bool {
		return slices.ContainsFunc(effects, func(e effect) bool { return e.kind == kind })
	}
	if has(effectConnect) && after.phase != phaseConnecting {
		t.Fatalf("an attempt in phase %s", after.phase)
	}
	if has(effectLoss) && live(after) {
		t.Fatalf("a loss counted while %s", after.phase)
	}
	if live(after) && len(effects) > 0 && !has(effectRenew) && !after.probing && !has(effectWake) {
		t.Fatalf("%s, not probing, and no wake among %v", after.phase, effects)
	}
	if after.phase == phaseWaiting && len(effects) > 0 && !has(effectWake) {
		t.Fatalf("waiting without a wake")
	}
}
