// Package build makes the binaries of a playground from the pinned Go modules.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// AssetsEnv names a folder of ready-made binaries that are used instead of building them.
const AssetsEnv = "KUBEBUILDER_ASSETS"

// Binaries maps a component (etcd, kube-apiserver, …, ferry) to its path.
type Binaries map[string]string

// Builder makes binaries in one repository.
type Builder struct {
	Root     string    // the repository
	Progress io.Writer // gets a line per step

	mu   sync.Mutex        // guards Progress and what follows
	dirs map[string]string // of operators' modules: to find one takes the go command half a second
}

// FindRoot walks up from dir to the folder whose go.mod is Ferry's.
func FindRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if isFerry(filepath.Join(at, "go.mod")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod of module ferry.dev/ferry in %s or above: run this inside Ferry's repository", dir)
		}
	}
}

// Home is the ignored folder where everything of the playgrounds lives.
func (b *Builder) Home() string { return filepath.Join(b.Root, ".playground") }

func (b *Builder) bin(name string) string { return filepath.Join(b.Home(), "bin", name) }

func (b *Builder) say(format string, args ...any) {
	if b.Progress == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.Progress, format+"\n", args...)
}

// All makes every binary that a playground needs, and Ferry's own when asked. What is up to date is left alone,
// except for Ferry, where Go's build cache decides. Two builders in one repository wait for each other.
func (b *Builder) All(ctx context.Context, ferry bool) (Binaries, error) {
	unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()

	binaries := Binaries{}
	for _, t := range tools {
		if err := b.tool(ctx, t, binaries); err != nil {
			return nil, err
		}
	}
	if ferry {
		path, err := b.ferry(ctx)
		if err != nil {
			return nil, err
		}
		binaries["ferry"] = path
	}
	return binaries, nil
}

// lock keeps two processes from building at the same time; the kernel drops it with the process.
func (b *Builder) lock(ctx context.Context) (func(), error) {
	if err := os.MkdirAll(filepath.Join(b.Home(), "bin"), 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for binaries: %w", err)
	}
	f, err := os.OpenFile(b.bin(".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the build lock: %w", err)
	}
	told := false
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("take the build lock: %w", err)
		}
		if !told {
			b.say("another playground is building; waiting for it")
			told = true
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for another build: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tool makes the binaries of one pinned module, unless all are ready.
func (b *Builder) tool(ctx context.Context, t tool, binaries Binaries) error {
	sum, err := t.sum(b.Root)
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range t.names() {
		if path := ready(name); path != "" {
			binaries[name] = path
			continue
		}
		binaries[name] = b.bin(name)
		if !b.current(name, sum) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := b.compile(ctx, t, missing); err != nil {
		return err
	}
	for _, name := range missing {
		if err := os.WriteFile(b.bin(name)+".stamp", []byte(sum), 0o644); err != nil {
			return fmt.Errorf("note that %s is built: %w", name, err)
		}
	}
	return nil
}

// ready finds a binary that the environment brings along.
func ready(name string) string {
	dir := os.Getenv(AssetsEnv)
	if dir == "" {
		return ""
	}
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}

func (b *Builder) current(name, sum string) bool {
	stamp, err := os.ReadFile(b.bin(name) + ".stamp")
	if err != nil || string(stamp) != sum {
		return false
	}
	_, err = os.Stat(b.bin(name))
	return err == nil
}
