package process

import (
	"os/exec"
	"runtime"
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r := spawnRequest{cmd: cmd, result: make(chan error, 1)}
	spawner() <- r
	return <-r.result
}
