package playground

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"ferry.dev/ferry/playground/process"
)

const (
	pollEvery = 100 * time.Millisecond
	// readyWithin bounds the wait for any one thing; generous, for machines that do other work too.
	readyWithin = 3 * time.Minute
)

// each runs f for all items at once. The first failure cancels the others and is the one that is returned.
func each[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, item := range items {
		all.Go(func() {
			if err := f(ctx, item); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// together runs different steps at once, like each.
func together(ctx context.Context, steps ...func(context.Context) error) error {
	return each(ctx, steps, func(ctx context.Context, step func(context.Context) error) error { return step(ctx) })
}

// await repeats check until it succeeds. It gives up when a process that the check needs ends, or after readyWithin;
// the error then shows why the last check failed, and the end of the log of the first process.
func await(ctx context.Context, what string, check func(context.Context) error, needs ...*process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, c := range needs {
			if failure := c.Failure(); failure != nil {
				return failure
			}
		}
		select {
		case <-ctx.Done():
			return gaveUp(ctx, what, err, needs)
		case <-time.After(pollEvery):
		}
	}
}

func gaveUp(ctx context.Context, what string, last error, needs []*process.Process) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || len(needs) == 0 {
		return fmt.Errorf("wait for %s: %w (last seen: %w)", what, context.Cause(ctx), last)
	}
	return fmt.Errorf("%s is not ready in time: %w; the end of %s:\n%s", what, last, needs[0].LogFile(), needs[0].Tail(20))
}

// The probes only ask whether a server on loopback is up; who it is does not matter.
var probeClient = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// answers checks that a URL gives status 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := probeClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
		}
		return nil
	}
}
