package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// fakeLink is a connection without a network; the embedded Conn is nil.
type fakeLink struct {
	Conn
	fails  func() error
	closed chan struct{}
}

func (l *fakeLink) probe(context.Context, bool) error { return l.fails() }
func (l *fakeLink) renew(*rest.Config) error          { return nil }
func (l *fakeLink) close()                            { close(l.closed) }

// stage is a scripted network, in the fake time of synctest.
type stage struct {
	fleet    *Fleet
	start    time.Time
	links    []*fakeLink
	finished chan struct{}

	mu    sync.Mutex // guards what follows
	log   []string   // of states and attempts, with the seconds since the start
	dial  func(ctx context.Context, worker string) error
	probe func() error
}

// dials says what attempts to connect come to from now on.
func (s *stage) dials(dial func(ctx context.Context, worker string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dial = dial
}

// probes says what probes come to from now on.
func (s *stage) probes(probe func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probe = probe
}

// now tells what attempts and probes come to.
func (s *stage) now() (dial func(ctx context.Context, worker string) error, probe func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dial, s.probe
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%v ", time.Since(s.start))+fmt.Sprintf(format, args...))
}

func newStage(t *testing.T) *stage {
	s := &stage{start: time.Now(), finished: make(chan struct{})}
	s.dial = func(context.Context, string) error { return nil }
	s.probe = func() error { return nil }
	s.fleet = New(Options{
		Events: Events{State: func(w string, st Status) { s.note("%s %s", w, st.Reach) }},
		connect: func(ctx context.Context, to target) (link, error) {
			s.note("%s attempt", to.worker)
			dial, _ := s.now()
			if err := dial(ctx, to.worker); err != nil {
				return nil, err
			}
			made := &fakeLink{fails: func() error { _, probe := s.now(); return probe() }, closed: make(chan struct{})}
			s.links = append(s.links, made)
			return made, nil
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() { defer close(s.finished); _ = s.fleet.Start(ctx) }()
	t.Cleanup(func() { stop(); <-s.finished })
	synctest.Wait()
	return s
}

// settle lets everything happen that happens within d.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// take returns what was noted. An attempt and the telling of it come from two
// goroutines at one instant, in any order: the telling is put first.
func (s *stage) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	for i := 1; i < len(log); i++ {
		if when, is := strings.CutSuffix(log[i], "Connecting"); is && log[i-1] == when+"attempt" {
			log[i-1], log[i] = log[i], log[i-1]
		}
	}
	return log
}

func TestAttemptsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.dials(func(context.Context, string) error { return errors.New("refused") })
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(20 * time.Second)
		g.Expect(s.take()).To(Equal([]string{
			"0s w1 Connecting", "0s w1 attempt", "0s w1 Lost", "1s w1 attempt", "1s w1 Lost", "3s w1 attempt", "3s w1 Lost",
			"7s w1 attempt", "7s w1 Lost", "15s w1 attempt", "15s w1 Lost"}))
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(time.Second)
		g.Expect(s.take()).To(BeEmpty(), "the same credentials do not hurry it")
		s.fleet.Set("w1", &rest.Config{}, "2")
		settle(time.Second)
		g.Expect(s.take()).To(Equal([]string{
			"21s w1 Connecting", "21s w1 attempt", "21s w1 Lost", "22s w1 attempt", "22s w1 Lost"}))
		g.Expect(s.fleet.Status("w1").LostSince).To(Equal(s.start))
	})
}

func TestAnAttemptThatHangsIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.dials(func(ctx context.Context, worker string) error {
			if worker == "sick" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		s.fleet.Set("sick", &rest.Config{}, "1")
		settle(time.Second)
		s.fleet.Set("well", &rest.Config{}, "1")
		settle(0)
		g.Expect(s.fleet.Status("well").Reach).To(Equal(Connected))
		g.Expect(s.fleet.Status("sick").Reach).To(Equal(Connecting))
		s.dials(func(context.Context, string) error { return nil })
		s.fleet.Set("sick", &rest.Config{}, "2")
		settle(0)
		g.Expect(s.fleet.Status("sick").Reach).To(Equal(Connected))
	})
}

func TestAnAttemptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.dials(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(time.Minute)
		g.Expect(s.fleet.Status("w1").Reach).To(Equal(Lost))
	})
}

func TestLossIsCountedFromTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(12 * time.Second)
		s.probes(func() error { return errors.New("down") })
		s.dials(func(context.Context, string) error { return errors.New("down") })
		s.take()
		settle(14 * time.Second)
		g.Expect(s.take()).To(Equal([]string{"15s w1 Suspect", "25s w1 Lost", "26s w1 attempt", "26s w1 Lost"}))
		g.Expect(s.fleet.Status("w1").LostSince).To(Equal(s.start.Add(15 * time.Second)))
		g.Expect(s.links[0].closed).To(BeClosed())
		s.dials(func(context.Context, string) error { return nil })
		settle(2 * time.Second)
		g.Expect(s.fleet.Status("w1")).To(Equal(Status{Reach: Connected, Seen: true, Reason: "Active", Message: "Connected"}))
	})
}

func TestAPassingSuspicion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(0)
		s.take()
		s.probes(func() error { return errors.New("down") })
		settle(7 * time.Second)
		_, usable := s.fleet.Conn("w1")
		g.Expect(usable).To(BeTrue())
		s.probes(func() error { return nil })
		settle(5 * time.Second)
		g.Expect(s.take()).To(Equal([]string{"5s w1 Suspect", "10s w1 Connected"}))
		g.Expect(s.links[0].closed).NotTo(BeClosed())
	})
}

func TestUnusableClosesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(time.Second)
		s.fleet.Unusable("w1", "BadKubeConfig", "no Secret")
		_, usable := s.fleet.Conn("w1")
		g.Expect(usable).To(BeFalse(), "before anything else had a chance to run")
		settle(time.Hour)
		g.Expect(s.links).To(HaveLen(1))
		g.Expect(s.links[0].closed).To(BeClosed())
		g.Expect(s.fleet.Status("w1").LostSince).To(Equal(s.start.Add(time.Second)))
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(0)
		g.Expect(s.fleet.Status("w1").Reach).To(Equal(Connected))
	})
}

func TestRemovedAndSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(time.Second)
		s.take()
		s.fleet.Remove("w1")
		s.fleet.Set("w1", &rest.Config{}, "1")
		settle(0)
		g.Expect(s.take()).To(Equal([]string{"1s w1 ", "1s w1 Connecting", "1s w1 attempt", "1s w1 Connected"}))
		g.Expect(s.links[0].closed).To(BeClosed())
		g.Expect(s.links[1].closed).NotTo(BeClosed())
	})
}

func TestSetBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		made := &fakeLink{fails: func() error { return nil }, closed: make(chan struct{})}
		f := New(Options{connect: func(context.Context, target) (link, error) { return made, nil }})
		f.Set("w1", &rest.Config{}, "1")
		settle(time.Hour)
		g.Expect(f.Status("w1").Reach).To(Equal(Connecting))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Start(ctx) }()
		settle(0)
		g.Expect(f.Status("w1").Reach).To(Equal(Connected))
		stop()
		g.Expect(<-ended).To(Succeed())
		g.Expect(made.closed).To(BeClosed())
	})
}

// TestSeen: what was connected once stays known as such, through a loss, new credentials and a removal.
func TestSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := newStage(t)
		refuse := func(context.Context, string) error { return errors.New("refused") }
		accept := func(context.Context, string) error { return nil }
		s.dials(refuse)
		seen := func() bool { settle(5 * time.Second); return s.fleet.Status("w1").Seen }
		g.Expect(seen()).To(BeFalse(), "unheard of")
		s.fleet.Set("w1", &rest.Config{}, "1")
		g.Expect(seen()).To(BeFalse(), "not connected yet")
		s.dials(accept)
		g.Expect(seen()).To(BeTrue(), "connected")
		s.dials(refuse)
		s.fleet.Set("w1", &rest.Config{}, "2")
		g.Expect(seen()).To(BeTrue(), "lost")
		s.fleet.Remove("w1")
		g.Expect(seen()).To(BeTrue(), "removed")
		s.fleet.Set("w1", &rest.Config{}, "3")
		g.Expect(seen()).To(BeTrue(), "back")
	})
}
