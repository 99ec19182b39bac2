package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// wire is the network of one connection: TCP connections of its own, shared with nobody, so that closing it ends
// whatever is still under way and a new connection never inherits a dead one.
type wire struct {
	life    context.Context // ends when the wire is closed
	timeout time.Duration   // of a request while nothing of its response comes
	now     atomic.Pointer[login]

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// login is the way through a wire with the credentials of one kubeconfig.
type login struct {
	wire          *wire
	base          *http.Transport
	authenticated http.RoundTripper // adds the credentials to a request before it goes through this login
}

// newWire prepares the network for cfg; it does not connect yet.
func newWire(life context.Context, cfg *rest.Config, timeout time.Duration) (*wire, error) {
	w := &wire{life: life, timeout: timeout, conns: map[net.Conn]struct{}{}}
	if err := w.use(cfg); err != nil {
		return nil, err
	}
	context.AfterFunc(life, w.cut)
	return w, nil
}

// use lets all further requests go with the credentials of cfg. What is under way goes on with those that it began with.
func (w *wire) use(cfg *rest.Config) error {
	made, err := w.login(cfg)
	if err != nil {
		return err
	}
	if before := w.now.Swap(made); before != nil {
		before.base.CloseIdleConnections()
	}
	return nil
}

func (w *wire) login(cfg *rest.Config) (*login, error) {
	trust, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS settings of the kubeconfig: %w", err)
	}
	proxy := cfg.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	l := &login{wire: w, base: &http.Transport{
		Proxy:               proxy,
		DialContext:         w.dial,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: w.timeout,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		// Pings tell a connection that a middlebox dropped from one that is idle.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}}
	if l.authenticated, err = rest.HTTPWrappersForConfig(cfg, l); err != nil {
		return nil, fmt.Errorf("reading the credentials of the kubeconfig: %w", err)
	}
	return l, nil
}

// RoundTrip sends a request with the present credentials.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	return w.now.Load().authenticated.RoundTrip(req)
}

// RoundTrip bounds a request by the timeout, but not all of its response: only how long nothing of it comes.
func (l *login) RoundTrip(req *http.Request) (*http.Response, error) {
	w := l.wire
	if w.life.Err() != nil {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	deadline := newDeadline(req, w.timeout, func() { cancel(&noAnswerError{after: w.timeout}) })
	resp, err := l.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		deadline.end()
		err = w.because(ctx, req.Context(), err)
		cancel(nil)
		return nil, err
	}
	deadline.begins()
	resp.Body = &boundedBody{ReadCloser: resp.Body, deadline: deadline, cancel: cancel, because: func(err error) error {
		return w.because(ctx, req.Context(), err)
	}}
	return resp, nil
}

// because replaces the error of a request that was ended by us with the reason.
func (w *wire) because(ctx, callers context.Context, err error) error {
	if w.life.Err() != nil {
		return errClosed
	}
	if cause := context.Cause(ctx); cause != nil && callers.Err() == nil {
		return cause
	}
	return err
}

// dial connects, and keeps hold of the connection until it is closed.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	made, err := (&net.Dialer{Timeout: w.timeout, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life.Err() != nil {
		_ = made.Close() // nothing was sent on it yet
		return nil, errClosed
	}
	held := &heldConn{Conn: made, wire: w}
	w.conns[held] = struct{}{}
	return held, nil
}

// cut closes every TCP connection.
func (w *wire) cut() {
	w.now.Load().base.CloseIdleConnections()
	w.mu.Lock()
	open := make([]net.Conn, 0, len(w.conns))
	for held := range w.conns {
		open = append(open, held)
	}
	w.mu.Unlock()
	for _, held := range open {
		_ = held.Close() // whatever error: it is gone
	}
}

type heldConn struct {
	net.Conn
	wire *wire
}

// Close forgets the connection and closes it.
func (c *heldConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}
