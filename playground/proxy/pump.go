package proxy

import (
	"net"
	"sync"
	"time"
)

const (
	chunkSize   = 32 << 10
	chunksAhead = 64 // how much a delayed direction may hold
)

type chunk struct {
	data []byte
	due  time.Time
}

// serve carries one client connection, until either side closes it.
func (p *Proxy) serve(client net.Conn, l net.Listener) {
	defer p.forget(client)
	if !p.admit() {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return // the client sees a closed connection, as it would without us
	}
	if !p.track(server, l) {
		return
	}
	defer p.forget(server)

	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client) })
	both.Go(func() { p.pump(client, server) })
	both.Wait()
}

// pump carries one direction. A reader stamps what comes in, a writer holds it until it is due: so a
// delay costs time, not throughput.
func (p *Proxy) pump(to, from net.Conn) {
	// Either side's end ends both directions; TLS has no use for half-closed connections.
	defer to.Close()
	defer from.Close()
	ahead := make(chan chunk, chunksAhead)
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { p.read(from, ahead, stop) })
	for c := range ahead {
		time.Sleep(time.Until(c.due))
		if !p.admit() {
			break
		}
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	close(stop)
	_ = from.Close()
	reader.Wait()
}

func (p *Proxy) read(from net.Conn, ahead chan<- chunk, stop <-chan struct{}) {
	defer close(ahead)
	for {
		data := make([]byte, chunkSize)
		n, err := from.Read(data)
		if n > 0 {
			_, d := p.Mode()
			select {
			case ahead <- chunk{data: data[:n], due: time.Now().Add(d)}:
			case <-stop:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// admit blocks while the proxy is a black hole; false means that nothing passes any more.
func (p *Proxy) admit() bool {
	for {
		p.mu.Lock()
		mode, closed, changed := p.mode, p.closed, p.changed
		p.mu.Unlock()
		if closed || mode == Cut {
			return false
		}
		if mode != BlackHole {
			return true
		}
		<-changed
	}
}
