package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/process"
	"ferry.dev/ferry/playground/reserve"
)

const (
	pollEvery = 50 * time.Millisecond
	// stopWithin bounds a daemon's orderly end; after that it is killed.
	stopWithin = 30 * time.Second
)

// Up starts a playground in a daemon of its own and returns once it is ready for jobs. o.Progress gets the lines of
// the start. When ctx ends before that, or the start fails, nothing is left running.
func Up(ctx context.Context, o playground.Options) (*Client, error) {
	if o.Name == "" {
		o.Name = playground.DefaultName
	}
	c, err := New(o.Name)
	if err != nil {
		return nil, err
	}
	if owned(c.dir) {
		return nil, fmt.Errorf("playground %q runs already; take it down first, or choose another name", o.Name)
	}
	gone, err := c.spawn(o)
	if err != nil {
		return nil, err
	}
	err = c.awaitSocket(ctx, gone)
	if err == nil {
		err = c.follow(ctx, func(line string) {
			if o.Progress != nil {
				fmt.Fprintln(o.Progress, line)
			}
		})
	}
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if o.Keep {
		return nil, errors.Join(err, c.halt())
	}
	return nil, errors.Join(err, c.Down())
}

// owned tells whether a process owns the playground in dir.
func owned(dir string) bool {
	var probe reserve.Set
	defer probe.Release()
	return errors.Is(probe.Name(playground.LockName(dir)), reserve.ErrTaken)
}

// spawn starts this program once more, as a daemon: detached from the terminal and from this process.
func (c *Client) spawn(o playground.Options) (gone <-chan struct{}, err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	options, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write the options: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.Create(filepath.Join(c.dir, logFile))
	if err != nil {
		return nil, fmt.Errorf("make the daemon's log: %w", err)
	}
	defer log.Close()

	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), optionsEnv+"="+string(options))
	cmd.Stdout, cmd.Stderr = log, log
	if err := process.Detach(cmd); err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, pidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("note the daemon's process id: %w", err), cmd.Process.Kill())
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return ended, nil
}

func (c *Client) awaitSocket(ctx context.Context, gone <-chan struct{}) error {
	for {
		conn, err := dial(ctx, c.dir)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-gone:
			return fmt.Errorf("the daemon ended at once; the end of its log:\n%s", process.TailFile(filepath.Join(c.dir, logFile), 20))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollEvery):
		}
	}
}

// Down stops the playground and removes its state, also what a crash left. It is fine when there is nothing.
func (c *Client) Down() error {
	if err := c.halt(); err != nil {
		return err
	}
	return playground.RemoveState(c.dir)
}

// halt ends the daemon, and its processes with it: asked first, then killed.
func (c *Client) halt() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	// Without a daemon this fails at once; whether one is left is seen below.
	_ = c.post(ctx, "/stop", nil)
	if pid := c.daemonPID(); pid != 0 && !c.awaitEnd(pid, 2*lingers) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill the daemon (pid %d): %w", pid, err)
		}
		c.awaitEnd(pid, 2*lingers)
	}
	if owned(c.dir) {
		return fmt.Errorf("playground %q belongs to another process (a test, a benchmark?), which has to stop it", c.name)
	}
	return nil
}

// awaitEnd waits until the daemon is gone.
func (c *Client) awaitEnd(pid int, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(pollEvery) {
		if !isDaemon(pid) && !owned(c.dir) {
			return true
		}
	}
	return false
}

// daemonPID is the daemon's process id, 0 when it does not live.
func (c *Client) daemonPID() int {
	text, err := os.ReadFile(filepath.Join(c.dir, pidFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil || !isDaemon(pid) {
		return 0
	}
	return pid
}
