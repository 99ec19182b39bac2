package fleet

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// reading is how a mirror is filled for the first time. A large list, or one from far away, takes as long as it takes:
// what bounds it is that it gets on.
type reading struct {
	synced <-chan struct{} // closed at its end
	moved  func()          // told when more has come than ever before; may be nil

	mu   sync.Mutex
	got  int64          // bytes of the present try
	most map[bool]int64 // of all tries; by whether it was a watch, as the two are of other sizes
}

type readingKey struct{}

// readingOf is the reading that a request is for; nil if it is for something else.
func readingOf(ctx context.Context) *reading {
	r, _ := ctx.Value(readingKey{}).(*reading)
	return r
}

// over tells whether nothing is read for the first time.
func (r *reading) over() bool {
	if r == nil {
		return true
	}
	select {
	case <-r.synced:
		return true
	default:
		return false
	}
}

// begins notes a request. A try that stalls where the last one did gets nowhere, whatever it reads again;
// the next page of a list goes on where the last one ended.
func (r *reading) begins(req *http.Request) {
	if r == nil || req.URL.Query().Get("continue") != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = 0
}

// came notes that some of a response has come.
func (r *reading) came(n int, ofWatch bool) {
	if r.over() {
		return
	}
	r.mu.Lock()
	r.got += int64(n)
	further := r.got > r.most[ofWatch]
	if further {
		r.most[ofWatch] = r.got
	}
	r.mu.Unlock()
	if further && r.moved != nil {
		r.moved()
	}
}

// client is an HTTP client whose requests are for the reading.
func (r *reading) client(of *http.Client) *http.Client {
	return &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return of.Transport.RoundTrip(req.WithContext(context.WithValue(req.Context(), readingKey{}, r)))
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// deadline cuts a request when nothing of its response has come for as long as the timeout; but a watch may be quiet
// once its response has begun, unless it is what a mirror is first filled by.
type deadline struct {
	timeout time.Duration
	isWatch bool
	reading *reading
	begun   atomic.Bool
	timer   *time.Timer
}

func newDeadline(req *http.Request, timeout time.Duration, cut func()) *deadline {
	p := &deadline{timeout: timeout, isWatch: req.URL.Query().Get("watch") == "true", reading: readingOf(req.Context())}
	p.reading.begins(req)
	p.timer = time.AfterFunc(timeout, func() {
		if !p.begun.Load() || !p.mayBeQuiet() {
			cut()
		}
	})
	return p
}

func (p *deadline) mayBeQuiet() bool { return p.isWatch && p.reading.over() }

// begins notes that the response has.
func (p *deadline) begins() {
	p.begun.Store(true)
	p.timer.Reset(p.timeout)
}

// came notes that some of the response has come.
func (p *deadline) came(n int) {
	if p.mayBeQuiet() {
		return
	}
	p.timer.Reset(p.timeout)
	p.reading.came(n, p.isWatch)
}

func (p *deadline) end() { p.timer.Stop() }

// boundedBody is the body of a response that is cut once its deadline passes.
type boundedBody struct {
	io.ReadCloser
	deadline *deadline
	cancel   context.CancelCauseFunc
	because  func(error) error
}

// Read names our reason when we ended the response.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.deadline.came(n)
	}
	if err != nil && err != io.EOF {
		err = b.because(err)
	}
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() error {
	b.deadline.end()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
