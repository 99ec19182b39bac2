// Package proxy is a TCP proxy that can cut, delay or swallow what passes through it.
package proxy

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Mode is what the proxy does with connections.
type Mode string

// The modes of a proxy.
const (
	Pass      Mode = "pass"       // let everything through
	Cut       Mode = "cut"        // refuse new connections; those that were open are closed
	Delay     Mode = "delay"      // hold back each direction by a fixed time
	BlackHole Mode = "black-hole" // accept and never answer; open connections freeze
)

// Proxy forwards TCP connections from its address to a target. All methods may be called from several goroutines.
type Proxy struct {
	addr, target string

	mu       sync.Mutex // guards what follows
	mode     Mode
	delay    time.Duration
	changed  chan struct{} // closed and replaced at each change of mode
	listener net.Listener  // nil while cut or closed
	conns    map[net.Conn]struct{}
	closed   bool
}

// New starts a proxy in mode Pass that listens on addr and forwards to target (both host:port).
func New(addr, target string) (*Proxy, error) {
	p := &Proxy{addr: addr, target: target, mode: Pass, changed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.listen(); err != nil {
		return nil, err
	}
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.addr }

// Mode tells the current mode and, for Delay, the time.
func (p *Proxy) Mode() (Mode, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.delay
}

// Pass lets everything through again; frozen connections go on.
func (p *Proxy) Pass() error { return p.Set(Pass, 0) }

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() error { return p.Set(Cut, 0) }

// Delay holds back what each direction carries by d: a round trip takes 2d longer.
func (p *Proxy) Delay(d time.Duration) error { return p.Set(Delay, d) }

// BlackHole accepts connections and lets nothing through.
func (p *Proxy) BlackHole() error { return p.Set(BlackHole, 0) }

// Set changes the mode; d counts for Delay only. It fails on an unknown mode, or when the port cannot be opened again.
func (p *Proxy) Set(mode Mode, d time.Duration) error {
	switch mode {
	case Pass, Cut, BlackHole:
		d = 0
	case Delay:
		if d <= 0 {
			return fmt.Errorf("proxy %s: mode delay needs a time above 0, got %s", p.addr, d)
		}
	default:
		return fmt.Errorf("proxy %s: no mode %q; there are %s, %s, %s, %s", p.addr, mode, Pass, Cut, Delay, BlackHole)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("proxy %s is closed", p.addr)
	}
	if mode == Cut {
		p.drop()
	} else if p.listener == nil {
		if err := p.listen(); err != nil {
			return err
		}
	}
	p.mode, p.delay = mode, d
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.drop()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) listen() error {
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("proxy: listen on %s: %w", p.addr, err)
	}
	p.addr = l.Addr().String()
	p.listener = l
	go p.accept(l)
	return nil
}

func (p *Proxy) drop() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the listener was closed
		}
		if p.track(c, l) {
			go p.serve(c, l)
		}
	}
}

// track remembers a connection so that Cut can close it; one that comes too late is closed at once.
func (p *Proxy) track(c net.Conn, l net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != l {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
