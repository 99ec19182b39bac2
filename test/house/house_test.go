// Package house_test keeps the rules of the house: who may import whom, how things are called, how large they may grow.
package house_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "ferry.dev/ferry"

// floors orders the rooms: a package imports only rooms on lower floors, so that
// rooms on one floor, as the controllers are, do not import each other.
var floors = []struct {
	floor int
	room  string
}{
	{1, "internal/reason"},
	{2, "internal/quota"},
	{0, "internal/capacity"},
	{1, "internal/placement"},
	{0, "internal/kinds"},
	{0, "internal/inlet"},
	{0, "internal/config"},
	{2, "internal/plan"},
	{2, "internal/fleet"},
	{2, "internal/jobs"},
	{2, "internal/profile"},
	{3, "internal/observe"},
	{4, "internal/apply"},
	{5, "internal/controllers/"},
	{5, "internal/webhook"},
	{6, "internal/install"},
	{6, "internal/app"},
	{7, "cmd/"},
	{8, "playground"},
	{9, "playground/"},
	{10, "test/"},
	{10, "config"},
	{10, "examples"},
}

// product is the part of the module that ships.
var product = []string{"internal/", "cmd/"}

var pureRooms = []string{"internal/plan", "internal/kinds", "internal/placement", "internal/capacity", "internal/quota", "internal/reason"}

// impure are import paths, or their beginnings, that bring in a clock, a
// network, the machine or chance.
var impure = []string{
	"context", "os", "os/", "io", "io/", "net", "net/", "log", "log/", "math/rand", "math/rand/", "crypto/rand", "sync", "sync/", "runtime", "testing",
	"k8s.io/client-go", "k8s.io/klog/", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime", "github.com/go-logr/",
}

var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "types", "base", "misc", "shared"}

// goPackage is what `go list -json` tells about a package.
type goPackage struct {
	ImportPath, Name, Dir              string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports                            []string
}

// room is the package's path within the module.
func (p *goPackage) room() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func (p *goPackage) isProduct() bool {
	return slices.ContainsFunc(product, func(part string) bool { return strings.HasPrefix(p.room(), part) })
}

var listed = sync.OnceValues(list)

func packages(t *testing.T) []*goPackage {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

func list() ([]*goPackage, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var pkgs []*goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &goPackage{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list's output: %w", err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		return nil, errors.New("go list found no package")
	}
	return pkgs, nil
}

// floorOf is the room's floor; an entry with a trailing slash stands for all
// below it, one without for exactly that room and its parts.
func floorOf(room string) (int, bool) {
	best, floor := -1, 0
	for _, f := range floors {
		within := strings.HasPrefix(room, strings.TrimSuffix(f.room, "/")+"/")
		if strings.HasSuffix(f.room, "/") && !within {
			continue
		}
		if (room == f.room || within) && len(f.room) > best {
			best, floor = len(f.room), f.floor
		}
	}
	return floor, best >= 0
}

// sameStage: the parts of the playground, and those of a test level, may lean on each other.
func sameStage(a, b string) bool {
	for _, stage := range []string{"playground/", "test/"} {
		if strings.HasPrefix(a, stage) && strings.HasPrefix(b, stage) {
			return true
		}
	}
	return false
}

// TestImportsRunOneWay: what a room imports of this module lies on a lower floor, or within the room.
func TestImportsRunOneWay(t *testing.T) {
	for _, p := range packages(t) {
		mine, known := floorOf(p.room())
		if !known {
			t.Errorf("%s has no floor: give it one in this test's table", p.room())
			continue
		}
		for _, path := range p.Imports {
			other, isOurs := strings.CutPrefix(path, module+"/")
			if !isOurs || strings.HasPrefix(other, p.room()+"/") || sameStage(p.room(), other) {
				continue
			}
			if theirs, _ := floorOf(other); theirs >= mine {
				t.Errorf("%s (floor %d) imports %s (floor %d): imports run down only", p.room(), mine, other, theirs)
			}
		}
	}
}

// TestPureRoomsTouchNothing: the rooms that decide know no context, client, logger, clock, machine or chance.
func TestPureRoomsTouchNothing(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(pureRooms, p.room()) {
			continue
		}
		for _, path := range p.Imports {
			for _, bad := range impure {
				if path == bad || (strings.HasPrefix(path, bad) && (strings.HasSuffix(bad, "/") || path[len(bad)] == '/')) {
					t.Errorf("%s imports %s: a pure room takes it as an input", p.room(), path)
				}
			}
		}
	}
}

// TestOnlyKueuesAPI: of Kueue, the product takes the API types and nothing else.
func TestOnlyKueuesAPI(t *testing.T) {
	const kueue = "sigs.k8s.io/kueue/"
	for _, p := range packages(t) {
		if !p.isProduct() {
			continue
		}
		for _, path := range p.Imports {
			if strings.HasPrefix(path, kueue) && !strings.HasPrefix(path, kueue+"apis/") {
				t.Errorf("%s imports %s: only %sapis/ is allowed", p.room(), path, kueue)
			}
		}
	}
}

// TestNamesSayWhatIsInside: no package is called after nothing in particular.
func TestNamesSayWhatIsInside(t *testing.T) {
	for _, p := range packages(t) {
		for _, part := range strings.Split(p.room()+"/"+p.Name, "/") {
			if slices.Contains(vagueNames, part) {
				t.Errorf("%s: %q says nothing about what is inside", p.ImportPath, part)
			}
		}
	}
}

// TestPureRoomsExist guards the test above against a renamed room.
func TestPureRoomsExist(t *testing.T) {
	pkgs := packages(t)
	for _, room := range pureRooms {
		if !slices.ContainsFunc(pkgs, func(p *goPackage) bool { return p.room() == room }) {
			t.Errorf("no package %s/%s", module, room)
		}
	}
}
