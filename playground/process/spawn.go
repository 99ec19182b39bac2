package process

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

type spawnRequest struct {
	cmd    *exec.Cmd
	result chan error
}

// The kernel sends the parent-death signal when the thread that forked ends, not the process.
// So all children are forked by one thread which lives as long as the process.
var spawner = sync.OnceValue(func() chan<- spawnRequest {
	requests := make(chan spawnRequest)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.result <- r.cmd.Start()
		}
	}()
	return requests
})

// Spawn starts a command that dies with this process and does not hear the terminal's Ctrl-C.
func Spawn(cmd *exec.Cmd) error {
	closeInheritedOnExec()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r := spawnRequest{cmd: cmd, result: make(chan error, 1)}
	spawner() <- r
	return <-r.result
}

// Detach starts a command that outlives this process and its terminal.
func Detach(cmd *exec.Cmd) error {
	closeInheritedOnExec()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// closeInheritedOnExec keeps from children what this process was given beside its standard streams, and Go does not know of:
// the lock of a flock(1) around us would last as long as they live.
func closeInheritedOnExec() {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc nothing can be known
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
