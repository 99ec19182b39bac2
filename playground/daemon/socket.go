package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"ferry.dev/ferry/playground"
)

const (
	socketFile = playground.DaemonFiles + "sock"
	pidFile    = playground.DaemonFiles + "pid"
	logFile    = playground.DaemonFiles + "log"
)

// short names the socket through a file descriptor of its folder: a unix socket's address holds 107 bytes only,
// less than the path of many a checkout.
func short(dir string) (path string, folder *os.File, err error) {
	folder, err = os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("open the state folder: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketFile), folder, nil
}

func listen(dir string) (net.Listener, error) {
	// What is there is of a daemon that crashed: Up made sure that none lives.
	if err := os.Remove(filepath.Join(dir, socketFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	path, folder, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", filepath.Join(dir, socketFile), err)
	}
	// The state folder takes the socket along when it is removed.
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	return l, nil
}

func dial(ctx context.Context, dir string) (net.Conn, error) {
	path, folder, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}
