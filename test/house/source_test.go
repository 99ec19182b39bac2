package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFunctionLines = 60
	maxFileLines     = 400
)

// source is one parsed file of the module.
type source struct {
	pkg  *goPackage
	path string
	set  *token.FileSet
	file *ast.File
}

func (s source) lines() int { return s.set.File(s.file.Pos()).LineCount() }

// sources parses every file that belongs to a package; tests only when asked for.
func sources(t *testing.T, withTests bool) []source {
	t.Helper()
	var all []source
	for _, p := range packages(t) {
		names := slices.Clone(p.GoFiles)
		if withTests {
			names = append(append(names, p.TestGoFiles...), p.XTestGoFiles...)
		}
		for _, name := range names {
			s := source{pkg: p, path: filepath.Join(p.room(), name), set: token.NewFileSet()}
			file, err := parser.ParseFile(s.set, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			s.file = file
			all = append(all, s)
		}
	}
	return all
}

// TestSizes: functions and files stay small enough to be read at once.
func TestSizes(t *testing.T) {
	for _, s := range sources(t, true) {
		if n := s.lines(); n > maxFileLines {
			t.Errorf("%s has %d lines, the limit is %d", s.path, n, maxFileLines)
		}
		for _, decl := range s.file.Decls {
			f, isFunc := decl.(*ast.FuncDecl)
			if !isFunc {
				continue
			}
			first, last := s.set.Position(f.Pos()).Line, s.set.Position(f.End()).Line
			// A test may carry its table.
			isTest := strings.HasSuffix(s.path, "_test.go") && strings.HasPrefix(f.Name.Name, "Test")
			if n := last - first + 1; n >= maxFunctionLines && !isTest {
				t.Errorf("%s:%d: %s has %d lines, the limit is under %d", s.path, first, f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// TestPackageComments: each package says in one line what it is.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	for _, s := range sources(t, false) {
		comments[s.pkg.room()] = append(comments[s.pkg.room()], "")
		if s.file.Doc != nil {
			comments[s.pkg.room()] = append(comments[s.pkg.room()], strings.TrimSpace(s.file.Doc.Text()))
		}
	}
	for room, found := range comments {
		found = slices.DeleteFunc(found, func(text string) bool { return text == "" })
		if len(found) != 1 {
			t.Errorf("%s has %d package comments, it should have one", room, len(found))
			continue
		}
		if strings.Contains(found[0], "\n") {
			t.Errorf("%s: the package comment has more than one line", room)
		}
	}
}

// TestPureRoomsReadNoClock: time is an input.
func TestPureRoomsReadNoClock(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
	for _, s := range sources(t, false) {
		if !slices.Contains(pureRooms, s.pkg.room()) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, isSelector := n.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if from, isName := call.X.(*ast.Ident); isName && (from.Name == "time" || from.Name == "metav1") && slices.Contains(clock, call.Sel.Name) {
				t.Errorf("%s: %s.%s in a pure room", s.set.Position(call.Pos()), from.Name, call.Sel.Name)
			}
			return true
		})
	}
}

// TestProductNeverSleeps: waiting is done on conditions.
func TestProductNeverSleeps(t *testing.T) {
	for _, s := range sources(t, false) {
		if !s.pkg.isProduct() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, isSelector := n.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if from, isName := call.X.(*ast.Ident); isName && from.Name == "time" && call.Sel.Name == "Sleep" {
				t.Errorf("%s: time.Sleep: wait on a condition instead", s.set.Position(call.Pos()))
			}
			return true
		})
	}
}
