// Package process supervises one child process: its life, its log, its signals.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// State tells what a process is doing.
type State string

// The states of a process.
const (
	Stopped State = "stopped" // never started, or ended because we asked
	Running State = "running"
	Paused  State = "paused" // frozen with SIGSTOP
	Exited  State = "exited" // ended although nobody asked
)

// DefaultGrace is how long Stop waits after SIGTERM before it kills.
const DefaultGrace = 10 * time.Second

// Spec says what to run.
type Spec struct {
	Name  string        // how people call it, e.g. "w1/kube-apiserver"
	Path  string        // the binary
	Args  []string      // without the binary's own name
	Env   []string      // added to a minimal environment
	Dir   string        // working folder; made if missing
	Log   string        // file that gets stdout and stderr, appended
	Grace time.Duration // how long Stop waits before it kills; 0 means DefaultGrace
}

// Process is a supervised child. All methods may be called from several goroutines.
type Process struct {
	spec Spec

	op sync.Mutex // one Start, Stop, Kill or Restart at a time

	mu    sync.Mutex // guards what follows
	state State
	cmd   *exec.Cmd
	done  chan struct{} // closed when the current run has ended
	ended error
	asked bool // we asked the current run to end
}

// New prepares a process without starting it.
func New(spec Spec) *Process {
	if spec.Grace == 0 {
		spec.Grace = DefaultGrace
	}
	done := make(chan struct{})
	close(done)
	return &Process{spec: spec, state: Stopped, done: done}
}

// Name is how people call the process.
func (p *Process) Name() string { return p.spec.Name }

// LogFile is the path of its log.
func (p *Process) LogFile() string { return p.spec.Log }

// State tells what the process is doing now.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Running is true while the process lives, paused or not.
func (p *Process) Running() bool {
	s := p.State()
	return s == Running || s == Paused
}

// PID is the process id of the current run, 0 when there is none.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Running && p.state != Paused {
		return 0
	}
	return p.cmd.Process.Pid
}

// Done is closed when the current run ends; it is closed already when nothing runs.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Start runs the process. It is an error when it runs already.
func (p *Process) Start() error {
	p.op.Lock()
	defer p.op.Unlock()
	return p.start()
}

func (p *Process) start() error {
	if p.Running() {
		return fmt.Errorf("%s runs already (pid %d)", p.spec.Name, p.PID())
	}
	log, err := p.openLog()
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy

	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.spec.Dir, log, log
	cmd.Env = append(minimalEnv(), p.spec.Env...)
	if err := Spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}

	done := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.done, p.state, p.asked, p.ended = cmd, done, Running, false, nil
	p.mu.Unlock()
	go p.wait(cmd, done)
	return nil
}

func (p *Process) openLog() (*os.File, error) {
	for _, dir := range []string{p.spec.Dir, filepath.Dir(p.spec.Log)} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make a folder for %s: %w", p.spec.Name, err)
		}
	}
	log, err := os.OpenFile(p.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", p.spec.Name, err)
	}
	return log, nil
}

func (p *Process) wait(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.ended = err
	p.state = Exited
	if p.asked {
		p.state = Stopped
	}
	p.mu.Unlock()
	close(done)
}

// Stop asks the process to end with SIGTERM and kills it after the grace period.
// It returns once the process is gone; stopping what does not run is fine.
func (p *Process) Stop() error {
	p.op.Lock()
	defer p.op.Unlock()
	return p.stop(syscall.SIGTERM)
}

// Kill ends the process with SIGKILL and returns once it is gone.
func (p *Process) Kill() error {
	p.op.Lock()
	defer p.op.Unlock()
	return p.stop(syscall.SIGKILL)
}

// Restart is Stop and Start.
func (p *Process) Restart() error {
	p.op.Lock()
	defer p.op.Unlock()
	if err := p.stop(syscall.SIGTERM); err != nil {
		return err
	}
	return p.start()
}

func (p *Process) stop(sig syscall.Signal) error {
	done, err := p.end(sig)
	if err != nil || done == nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-time.After(p.spec.Grace):
	}
	if _, err := p.end(syscall.SIGKILL); err != nil {
		return err
	}
	<-done
	return nil
}

// end sends a final signal; a paused process is woken so that it can hear SIGTERM.
func (p *Process) end(sig syscall.Signal) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != Running && p.state != Paused {
		return nil, nil
	}
	p.asked = true
	if err := p.signal(sig); err != nil {
		return nil, err
	}
	if p.state == Paused {
		if err := p.signal(syscall.SIGCONT); err != nil {
			return nil, err
		}
	}
	return p.done, nil
}

// Pause freezes the process with SIGSTOP: its sockets stay open and nothing answers.
func (p *Process) Pause() error { return p.flip(syscall.SIGSTOP, Running, Paused) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.flip(syscall.SIGCONT, Paused, Running) }

func (p *Process) flip(sig syscall.Signal, from, to State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != from {
		return fmt.Errorf("%s is %s, not %s", p.spec.Name, p.state, from)
	}
	if err := p.signal(sig); err != nil {
		return err
	}
	p.state = to
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", sig, p.spec.Name, err)
	}
	return nil
}

// Failure describes an end that nobody asked for, with the end of the log; nil while all is well.
func (p *Process) Failure() error {
	p.mu.Lock()
	state, ended := p.state, p.ended
	p.mu.Unlock()
	if state != Exited {
		return nil
	}
	how := "exit status 0"
	if ended != nil {
		how = ended.Error()
	}
	return fmt.Errorf("%s ended by itself (%s); the end of %s:\n%s", p.spec.Name, how, p.spec.Log, p.Tail(20))
}

func minimalEnv() []string {
	var env []string
	for _, key := range []string{"PATH", "HOME", "TMPDIR", "GOMAXPROCS", "GOGC", "GOMEMLIMIT"} {
		if value, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+value)
		}
	}
	return env
}
