package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// DefaultKubeConfigDir is where Kueue looks for kubeconfig files.
const DefaultKubeConfigDir = "/etc/multikueue/kubeconfigs"

const (
	largestKubeConfig = 1 << 20                // bytes
	settleTime        = 100 * time.Millisecond // a file is replaced in several steps: tell once
)

var errOutside = errors.New("kubeconfig path is not under the allowed prefix")

// PathLoader reads kubeconfigs from files under one directory, and tells when any of them changes.
type PathLoader struct {
	dir     string
	recheck time.Duration
	changed func()
	log     logr.Logger

	mu      sync.Mutex
	watcher *fsnotify.Watcher   // nil until Start, or if the system has none to give
	folders map[string]struct{} // of the files that were asked for
}

// NewPathLoader makes a loader for files under dir. While Start runs, changed is called after every change of a file
// that was loaded, and every recheck anyway (1 minute if zero), as some file systems do not tell.
func NewPathLoader(dir string, recheck time.Duration, log logr.Logger, changed func()) *PathLoader {
	if recheck == 0 {
		recheck = time.Minute
	}
	return &PathLoader{dir: dir, recheck: recheck, changed: changed, log: log, folders: map[string]struct{}{}}
}

// Load reads the file at an absolute path under the directory. Symbolic links are followed as long as they stay
// inside, as those of a mounted Secret do.
func (l *PathLoader) Load(location string) ([]byte, error) {
	within, err := l.inside(location)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of kubeconfigs: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	info, err := root.Stat(within)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig file %s: %w", location, err)
	}
	if !info.Mode().IsRegular() || info.Size() > largestKubeConfig {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes: store a kubeconfig there", location, largestKubeConfig)
	}
	data, err := root.ReadFile(within)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig file %s: %w", location, err)
	}
	return data, nil
}

// inside returns the location relative to the directory, links resolved.
func (l *PathLoader) inside(location string) (string, error) {
	switch {
	case location == "":
		return "", errors.New("kubeconfig path must not be empty")
	case !filepath.IsAbs(location):
		return "", fmt.Errorf("%w: path must be absolute, use a path under %s", errOutside, l.dir)
	case slices.Contains(strings.Split(location, string(filepath.Separator)), ".."):
		return "", fmt.Errorf("%w: path contains \"..\", use a path under %s without it", errOutside, l.dir)
	}
	if lexical, err := filepath.Rel(l.dir, location); err != nil || !filepath.IsLocal(lexical) {
		return "", fmt.Errorf("%w: %q is not under %q", errOutside, location, l.dir)
	}
	base, err := filepath.EvalSymlinks(l.dir)
	if err != nil {
		return "", fmt.Errorf("%w: the directory %s of kubeconfigs does not exist: mount it, or use locationType Secret", errOutside, l.dir)
	}
	l.follow(filepath.Dir(filepath.Clean(location)))
	resolved, err := filepath.EvalSymlinks(location)
	if err != nil {
		return "", fmt.Errorf("cannot resolve kubeconfig path symlinks: %w", err)
	}
	within, err := filepath.Rel(base, resolved)
	if err != nil || !filepath.IsLocal(within) {
		return "", fmt.Errorf("%w: %q links to a file that is not under %q", errOutside, location, l.dir)
	}
	return within, nil
}

// NeedLeaderElection is true: only the leader talks to workers.
func (l *PathLoader) NeedLeaderElection() bool { return true }

// Start watches until ctx ends. Without a watcher the slow recheck has to do.
func (l *PathLoader) Start(ctx context.Context) error {
	events, failures, stop := l.watch()
	defer stop()
	slow := time.NewTicker(l.recheck)
	defer slow.Stop()
	settled := time.NewTimer(0)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			settled.Reset(settleTime)
		case err := <-failures:
			l.log.V(1).Info("Watching kubeconfig files failed; the slow recheck goes on", "error", err)
			settled.Reset(settleTime)
		case <-settled.C:
			l.changed()
		case <-slow.C:
			l.changed()
		}
	}
}

func (l *PathLoader) watch() (events <-chan fsnotify.Event, failures <-chan error, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		l.log.Info("Kubeconfig files cannot be watched; they are read again from time to time", "error", err, "every", l.recheck)
		return nil, nil, func() {}
	}
	l.watcher = watcher
	for folder := range l.folders {
		l.addLocked(folder)
	}
	return watcher.Events, watcher.Errors, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watcher = nil
		_ = watcher.Close() // it is not needed any more
	}
}

// follow watches the folder of a file that is asked for, also before it exists.
func (l *PathLoader) follow(folder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.folders[folder] = struct{}{}
	l.addLocked(folder)
}

// addLocked watches a folder, or the nearest one above it that exists.
func (l *PathLoader) addLocked(folder string) {
	if l.watcher == nil {
		return
	}
	for l.watcher.Add(folder) != nil && folder != l.dir && len(folder) > len(l.dir) {
		folder = filepath.Dir(folder)
	}
}
