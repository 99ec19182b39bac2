package demo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// silence is how long a start may say nothing before the demo says that it still goes on: compilers are quiet.
const silence = 30 * time.Second

// patient passes lines on, and tells the time when none come for a while.
type patient struct {
	done chan struct{}

	mu   sync.Mutex // guards what follows
	out  io.Writer
	last time.Time
}

func newPatient(out io.Writer) *patient {
	p := &patient{done: make(chan struct{}), out: out, last: time.Now()}
	go p.watch()
	return p
}

func (p *patient) watch() {
	tick := time.NewTicker(silence)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			p.mu.Lock()
			if quiet := time.Since(p.last); quiet >= silence {
				fmt.Fprintf(p.out, "        still at it, for %s\n", quiet.Round(time.Second))
			}
			p.mu.Unlock()
		}
	}
}

// Write implements io.Writer.
func (p *patient) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	return p.out.Write(data)
}

func (p *patient) stop() { close(p.done) }
