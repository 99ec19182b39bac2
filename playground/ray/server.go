// Package ray stands in for the Ray heads of a cluster of fake pods: an HTTP proxy that answers what KubeRay asks them.
package ray

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// RunFor and Fail direct single jobs. They are part of a RayJob's spec.jobId, the one thing that always reaches a head.
const (
	// RunFor, followed by a Go duration and the end or "-", is how long the job runs: run-for-10s-train-1.
	RunFor = "run-for-"
	// Fail at the beginning makes the job end as FAILED: fail-run-for-1s.
	Fail = "fail-"
)

// Server plays all heads; each is told from the others by the host that a request is for.
type Server struct {
	listener net.Listener
	http     http.Server
	runFor   time.Duration
	now      func() time.Time

	mu    sync.Mutex // guards what follows
	heads map[string]*head
	// ended is when all jobs that had begun were told to end.
	ended time.Time
}

// head is what one Ray cluster knows.
type head struct {
	jobs map[string]job
	// apps are the Serve applications, as they were put.
	apps []app
}

// Serve listens on address (host:port). Jobs run for runFor, unless their id says otherwise.
func Serve(address string, runFor time.Duration) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("play the Ray heads: %w", err)
	}
	s := newServer(runFor, time.Now)
	s.listener = listener
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

func newServer(runFor time.Duration, now func() time.Time) *Server {
	s := &Server{runFor: runFor, now: now, heads: map[string]*head{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/jobs/{$}", s.list)
	mux.HandleFunc("POST /api/jobs/{$}", s.submit)
	mux.HandleFunc("GET /api/jobs/{id}", s.info)
	mux.HandleFunc("GET /api/jobs/{id}/logs", s.logs)
	mux.HandleFunc("POST /api/jobs/{id}/stop", s.stop)
	mux.HandleFunc("DELETE /api/jobs/{id}", s.remove)
	mux.HandleFunc("PUT /api/serve/applications/", s.deploy)
	mux.HandleFunc("GET /api/serve/applications/", s.applications)
	mux.HandleFunc("GET /-/healthz", func(http.ResponseWriter, *http.Request) {})
	s.http.Handler, s.http.ReadHeaderTimeout = mux, 5*time.Second
	return s
}

// URL is what HTTP_PROXY has to say.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// EndJobs ends all jobs that have begun, as if their time was over.
func (s *Server) EndJobs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.now()
}

// Close ends the server.
func (s *Server) Close() { _ = s.http.Close() }

// head finds whom the request is for; the caller holds mu.
func (s *Server) head(r *http.Request) *head {
	h := s.heads[r.Host]
	if h == nil {
		h = &head{jobs: map[string]job{}}
		s.heads[r.Host] = h
	}
	return h
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}

// read takes a JSON body; a bad one is answered with 400.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into)
	if err != nil {
		http.Error(w, "not JSON: "+err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// runs reads from its id how long a job runs, and whether it fails then.
func runs(id string, otherwise time.Duration) (runFor time.Duration, fails bool) {
	rest, fails := strings.CutPrefix(id, Fail)
	rest, found := strings.CutPrefix(rest, RunFor)
	if !found {
		return otherwise, fails
	}
	text, _, _ := strings.Cut(rest, "-")
	if runFor, err := time.ParseDuration(text); err == nil {
		return runFor, fails
	}
	return otherwise, fails
}
