package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// source is a program's stock source with a few places changed, where the stock one insists on what this machine does
// not have: a folder under /etc, or a port that only one process may have.
type source struct {
	module string
	files  []file // the first is in package main, at the top
	edits  []edit
}

// file is one file of the module, and where it goes.
type file struct{ from, to string }

// edit changes a place that is in one of the files, once.
type edit struct{ file, old, new string }

var errMoved = errors.New("what playground/build changes in the source is not where it was: adapt playground/build to this version")

// MetricsCerts is where our build of Kueue looks for tls.crt and tls.key, relative to its working folder.
const MetricsCerts = "metrics-certs"

const kueueModule = "sigs.k8s.io/kueue"

// Outside a cluster, stock Kueue insists on certificates under /etc, even with metrics off; writing there takes root,
// and would outlive the playground.
var kueueSource = source{
	module: kueueModule,
	files:  []file{{"cmd/kueue/main.go", "main.go"}},
	edits:  []edit{{"main.go", `"/etc/kueue/metrics/certs"`, `"` + MetricsCerts + `"`}},
}

// apply makes the edits that belong to one file.
func (s *source) apply(name, text string) (string, error) {
	for _, e := range s.edits {
		if e.file != name {
			continue
		}
		if strings.Count(text, e.old) != 1 {
			return "", fmt.Errorf("%s of %s: %q: %w", name, s.module, e.old, errMoved)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}

// adapt writes the changed source beside the tool's pins, and returns the folder to build.
func (b *Builder) adapt(ctx context.Context, t tool) (string, error) {
	pins := t.dir(b.Root)
	module, err := b.moduleDir(ctx, pins, t.adapted.module)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(b.Home(), "src", t.folder)
	texts := map[string]string{}
	for _, f := range t.adapted.files {
		text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(f.from)))
		if err != nil {
			return "", fmt.Errorf("read the source: %w", err)
		}
		if texts[f.to], err = t.adapted.apply(f.to, string(text)); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(pins, name))
		if err != nil {
			return "", fmt.Errorf("read the pins: %w", err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", fmt.Errorf("make the source folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("write the source: %w", err)
		}
	}
	return folder, nil
}
