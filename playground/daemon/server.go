// Package daemon keeps a playground running after the command that started it, and lets later commands reach it.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/process"
	"ferry.dev/ferry/playground/proxy"
)

// optionsEnv carries the options to the daemon; its presence makes a process a daemon.
const optionsEnv = "FERRY_PLAYGROUND_DAEMON"

// lingers is how long a daemon whose start failed waits for its last follower.
const lingers = 5 * time.Second

// Hook turns this process into a daemon if Up started it as one; it then does not return. Every command that
// calls Up calls Hook first in main.
func Hook() {
	text, ok := os.LookupEnv(optionsEnv)
	if !ok {
		return
	}
	var o playground.Options
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = serve(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type server struct {
	progress *progress
	cancel   context.CancelFunc // ends the start, or the playground
	finished chan struct{}      // closed when nothing is left

	mu sync.Mutex // guards p
	p  *playground.Playground
}

// serve owns a playground until it is told to stop.
func serve(o playground.Options) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	dir, err := playground.StateDir(o.Name)
	if err != nil {
		return err
	}
	socket, err := listen(dir)
	if err != nil {
		return err
	}
	s := &server{progress: newProgress(), cancel: cancel, finished: make(chan struct{})}
	api := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = api.Serve(socket) }()

	err = s.own(ctx, o)
	close(s.finished)
	// Followers get the outcome before we go.
	last, done := context.WithTimeout(context.Background(), lingers)
	defer done()
	return errors.Join(err, api.Shutdown(last))
}

func (s *server) own(ctx context.Context, o playground.Options) error {
	o.Progress = s.progress
	p, err := playground.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped during the start")
		}
		s.progress.end(err)
		return err
	}
	s.mu.Lock()
	s.p = p
	s.mu.Unlock()
	s.progress.end(nil)
	<-ctx.Done()
	return p.Stop()
}

func (s *server) playground() *playground.Playground {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /progress", s.follow)
	mux.HandleFunc("GET /status", s.status)
	mux.HandleFunc("POST /stop", s.stop)
	mux.HandleFunc("POST /component", s.ready(component))
	mux.HandleFunc("POST /operator", s.ready(operate))
	mux.HandleFunc("POST /link", s.ready(link))
	mux.HandleFunc("POST /queues", s.ready(queues))
	return mux
}

func (s *server) follow(w http.ResponseWriter, r *http.Request) {
	out := json.NewEncoder(w)
	err := s.progress.follow(r.Context(), func(m message) error {
		if err := out.Encode(m); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
	if err != nil {
		s.cancel() // whoever wanted the playground was killed during the start
	}
}

func (s *server) status(w http.ResponseWriter, _ *http.Request) {
	var status playground.Status
	if p := s.playground(); p != nil {
		status = p.Status()
		status.Ready = true
	}
	status.PID = os.Getpid()
	_ = json.NewEncoder(w).Encode(status)
}

func (s *server) stop(w http.ResponseWriter, r *http.Request) {
	s.cancel()
	select {
	case <-s.finished:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// ready answers 409 until the start is over, and 400 with the error of act.
func (s *server) ready(act func(*playground.Playground, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p := s.playground()
		if p == nil {
			http.Error(w, "the playground is still starting", http.StatusConflict)
			return
		}
		if err := act(p, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// actions are what can be done to a component.
var actions = map[string]func(*process.Process) error{
	"start":   (*process.Process).Start,
	"stop":    (*process.Process).Stop,
	"kill":    (*process.Process).Kill,
	"pause":   (*process.Process).Pause,
	"resume":  (*process.Process).Resume,
	"restart": (*process.Process).Restart,
}

func component(p *playground.Playground, r *http.Request) error {
	name, action := r.FormValue("name"), r.FormValue("action")
	c := p.Component(name)
	if c == nil {
		return fmt.Errorf("no component %q; `status` lists them", name)
	}
	act := actions[action]
	if act == nil {
		return fmt.Errorf("no action %q; there are start, stop, kill, pause, resume, restart", action)
	}
	return act(c)
}

func operate(p *playground.Playground, r *http.Request) error {
	name, action := r.FormValue("name"), r.FormValue("action")
	switch action {
	case "start":
		return p.StartOperator(r.Context(), name)
	case "stop":
		return p.StopOperator(r.Context(), name)
	}
	return fmt.Errorf("no action %q; there are start, stop", action)
}

func link(p *playground.Playground, r *http.Request) error {
	worker := r.FormValue("worker")
	l := p.Link(worker)
	if l == nil {
		return fmt.Errorf("no worker %q", worker)
	}
	var delay time.Duration
	if text := r.FormValue("delay"); text != "" {
		var err error
		if delay, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("delay %q is no duration, e.g. 500ms: %w", text, err)
		}
	}
	return l.Set(proxy.Mode(r.FormValue("mode")), delay)
}

func queues(p *playground.Playground, r *http.Request) error {
	var o playground.QueueOptions
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		return fmt.Errorf("read the options: %w", err)
	}
	return p.InstallQueues(r.Context(), o)
}
