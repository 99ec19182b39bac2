// Package reserve hands out ports and names that no other playground on this machine has.
package reserve

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// Ports below the kernel's ephemeral range (from 32768), so that no outgoing connection takes one meanwhile.
const (
	firstPort = 12000
	lastPort  = 31999
)

// ErrTaken says that another process holds the name.
var ErrTaken = errors.New("taken by another process")

// Set holds reservations until it is released or the process ends.
type Set struct {
	mu    sync.Mutex
	locks []net.Listener
}

// Port reserves a free loopback TCP port.
func (s *Set) Port() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		err := s.Name(fmt.Sprintf("port-%d", port))
		if errors.Is(err, ErrTaken) {
			continue
		}
		if err != nil {
			return 0, err
		}
		probe, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // a stranger uses it; the reservation is harmless
		}
		return port, probe.Close()
	}
	return 0, fmt.Errorf("no free port found on 127.0.0.1 between %d and %d", firstPort, lastPort)
}

// Name reserves a name on this machine, or returns ErrTaken. An abstract unix socket is the lock: the
// kernel drops it with the process, and it leaves no file behind.
func (s *Set) Name(name string) error {
	lock, err := net.Listen("unix", "@ferry-playground/"+name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%q is %w", name, ErrTaken)
	}
	if err != nil {
		return fmt.Errorf("reserve %q: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks = append(s.locks, lock)
	return nil
}

// Release gives everything back.
func (s *Set) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lock := range s.locks {
		_ = lock.Close()
	}
	s.locks = nil
}
