package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/proxy"
)

// Client talks to the daemon of one playground.
type Client struct {
	name, dir string
	http      *http.Client
}

// New prepares to talk to the daemon of the named playground, whether or not it runs.
func New(name string) (*Client, error) {
	dir, err := playground.StateDir(name)
	if err != nil {
		return nil, err
	}
	return clientFor(name, dir), nil
}

func clientFor(name, dir string) *Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir) }}
	return &Client{name: name, dir: dir, http: &http.Client{Transport: transport}}
}

// Dir is the playground's state folder.
func (c *Client) Dir() string { return c.dir }

// Status tells what runs. The error says so when nothing does.
func (c *Client) Status(ctx context.Context) (playground.Status, error) {
	var s playground.Status
	response, err := c.do(ctx, http.MethodGet, "/status", nil)
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("read the status: %w", err)
	}
	return s, nil
}

// Component does an action (start, stop, kill, pause, resume, restart) to a component.
func (c *Client) Component(ctx context.Context, name, action string) error {
	return c.post(ctx, "/component?"+url.Values{"name": {name}, "action": {action}}.Encode(), nil)
}

// Operator starts or stops a job operator.
func (c *Client) Operator(ctx context.Context, name, action string) error {
	return c.post(ctx, "/operator?"+url.Values{"name": {name}, "action": {action}}.Encode(), nil)
}

// Link changes the mode of the proxy in front of a worker.
func (c *Client) Link(ctx context.Context, worker string, mode proxy.Mode, delay time.Duration) error {
	values := url.Values{"worker": {worker}, "mode": {string(mode)}}
	if delay != 0 {
		values.Set("delay", delay.String())
	}
	return c.post(ctx, "/link?"+values.Encode(), nil)
}

// InstallQueues is Playground.InstallQueues; QueueOptions.Edit does not travel.
func (c *Client) InstallQueues(ctx context.Context, o playground.QueueOptions) error {
	data, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("write the queue options: %w", err)
	}
	return c.post(ctx, "/queues", data)
}

// follow passes on the lines of a start and returns its outcome.
func (c *Client) follow(ctx context.Context, line func(string)) error {
	response, err := c.do(ctx, http.MethodGet, "/progress", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	in := json.NewDecoder(response.Body)
	for {
		var m message
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			return errors.New("the daemon went away during the start")
		case err != nil:
			return fmt.Errorf("follow the start: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		case m.Ready:
			return nil
		}
		line(m.Line)
	}
}

func (c *Client) post(ctx context.Context, path string, body []byte) error {
	response, err := c.do(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// do makes a request; answers other than 2xx are errors with the daemon's words.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://playground"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	response, err := c.http.Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("playground %q does not run; start it with `up`", c.name)
	}
	if err != nil {
		return nil, fmt.Errorf("playground %q does not answer: %w", c.name, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	words, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return nil, errors.New(strings.TrimSpace(string(words)))
}
