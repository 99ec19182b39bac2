package daemon

import (
	"bytes"
	"context"
	"sync"
)

// message is one line of the stream that a start sends to whoever follows it.
type message struct {
	Line  string `json:"line,omitempty"`
	Error string `json:"error,omitempty"`
	Ready bool   `json:"ready,omitempty"`
}

// progress remembers the messages of a start, for followers that come early or late.
type progress struct {
	mu       sync.Mutex // guards what follows
	messages []message
	partial  []byte
	ended    bool
	changed  chan struct{}
}

func newProgress() *progress { return &progress{changed: make(chan struct{})} }

// Write takes lines of text.
func (p *progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, data...)
	for {
		line, rest, whole := bytes.Cut(p.partial, []byte("\n"))
		if !whole {
			break
		}
		p.messages = append(p.messages, message{Line: string(line)})
		p.partial = append([]byte(nil), rest...)
	}
	p.wake()
	return len(data), nil
}

// end closes the stream with its outcome.
func (p *progress) end(failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := message{Ready: failure == nil}
	if failure != nil {
		last.Error = failure.Error()
	}
	p.messages = append(p.messages, last)
	p.ended = true
	p.wake()
}

func (p *progress) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// follow passes on all messages from the first, until the last one, a failing send, or the end of ctx.
func (p *progress) follow(ctx context.Context, send func(message) error) error {
	for next := 0; ; {
		p.mu.Lock()
		messages, ended, changed := p.messages[next:], p.ended, p.changed
		p.mu.Unlock()
		for _, m := range messages {
			if err := send(m); err != nil {
				return err
			}
		}
		next += len(messages)
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}
