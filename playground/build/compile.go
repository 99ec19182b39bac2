package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ferry.dev/ferry/playground/process"
)

// compile builds the named binaries of a tool in one go, beside their place, and moves them there when all are good.
func (b *Builder) compile(ctx context.Context, t tool, names []string) error {
	slices.Sort(names)
	what := strings.Join(names, ", ")
	b.say("building %s%s", what, aside(t.note))
	begin := time.Now()

	dir, packages := t.dir(b.Root), []string{}
	for _, name := range names {
		packages = append(packages, t.packages[name])
	}
	if t.adapted != nil {
		source, err := b.adapt(ctx, t)
		if err != nil {
			return fmt.Errorf("build %s: %w", what, err)
		}
		dir, packages = source, []string{"."}
	}
	if err := b.goBuild(ctx, what, dir, t.ldflags, names, packages); err != nil {
		return err
	}
	b.say("built %s in %s", what, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

func aside(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}

func (b *Builder) ferry(ctx context.Context) (string, error) {
	b.say("building ferry")
	begin := time.Now()
	if err := b.goBuild(ctx, "ferry", b.Root, "", []string{"ferry"}, []string{"./cmd/ferry"}); err != nil {
		return "", err
	}
	b.say("built ferry in %s", time.Since(begin).Round(100*time.Millisecond))
	return b.bin("ferry"), nil
}

// goBuild compiles into a fresh folder first: a running binary cannot be written to, and a failed build leaves the old one.
func (b *Builder) goBuild(ctx context.Context, what, dir, ldflags string, names, packages []string) error {
	fresh, err := os.MkdirTemp(filepath.Join(b.Home(), "bin"), ".new-")
	if err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	defer os.RemoveAll(fresh)
	for _, name := range names {
		// Go leaves a file alone that is up to date, which saves the linking.
		if err := copyIfThere(b.bin(name), filepath.Join(fresh, name)); err != nil {
			return fmt.Errorf("build %s: %w", what, err)
		}
	}

	args := []string{"build", "-o", fresh + string(filepath.Separator)}
	if len(names) == 1 {
		args[2] = filepath.Join(fresh, names[0])
	}
	if ldflags != "" {
		args = append(args, "-ldflags", ldflags)
	}
	if _, err := run(ctx, dir, append(args, packages...)...); err != nil {
		return fmt.Errorf("build %s: %w", what, err)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(fresh, name), b.bin(name)); err != nil {
			return fmt.Errorf("put %s into place: %w", name, err)
		}
	}
	return nil
}

func copyIfThere(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// run calls the go command; its error carries the end of what go said. Nothing outlives ctx or this process.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	var out, complaints bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaints
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	cmd.WaitDelay = 5 * time.Second
	if err := process.Spawn(cmd); err != nil {
		return nil, fmt.Errorf("start the go command: %w", err)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the compilers too
		case <-done:
		}
	}()
	err := cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w; the end of its output:\n%s", args[0], err, end(complaints.Bytes(), 30))
	}
	return out.Bytes(), nil
}

func end(output []byte, lines int) string {
	all := strings.Split(strings.TrimSpace(string(output)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
