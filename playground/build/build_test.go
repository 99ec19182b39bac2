package build

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// repo makes a small repository with a program at cmd/ferry and a tool of one file.
func repo(t *testing.T) (*Builder, *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	files(t, root, map[string]string{
		"go.mod":                        "module ferry.dev/ferry\n\ngo 1.26\n",
		"cmd/ferry/main.go":             "package main\n\nfunc main() {}\n",
		"playground/tools/small/go.mod": "module small\n\ngo 1.26\n",
		"playground/tools/small/go.sum": "",
		"playground/tools/small/a.go":   "package main\n\nfunc main() {}\n",
	})
	said := &bytes.Buffer{}
	b := &Builder{Root: root, Progress: said}
	if err := os.MkdirAll(filepath.Join(b.Home(), "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(AssetsEnv, "")
	return b, said
}

func files(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var small = tool{folder: "small", packages: map[string]string{"tiny": "."}}

func TestAToolIsBuiltOnceUntilItsPinsChange(t *testing.T) {
	g := NewWithT(t)
	b, said := repo(t)
	binaries := Binaries{}
	g.Expect(b.tool(context.Background(), small, binaries)).To(Succeed())
	g.Expect(binaries["tiny"]).To(BeAnExistingFile())
	g.Expect(said.String()).To(MatchRegexp(`building tiny\nbuilt tiny in [0-9.]+m?s\n`))

	said.Reset()
	g.Expect(b.tool(context.Background(), small, binaries)).To(Succeed())
	g.Expect(said.String()).To(BeEmpty(), "nothing changed")

	files(t, b.Root, map[string]string{"playground/tools/small/go.sum": "\n"})
	g.Expect(b.tool(context.Background(), small, binaries)).To(Succeed())
	g.Expect(said.String()).To(ContainSubstring("built tiny"))

	said.Reset()
	g.Expect(os.Remove(binaries["tiny"])).To(Succeed())
	g.Expect(b.tool(context.Background(), small, binaries)).To(Succeed())
	g.Expect(said.String()).To(ContainSubstring("built tiny"), "the binary was gone")
}

func TestAFailedBuildNamesTheComponentAndKeepsTheOldBinary(t *testing.T) {
	g := NewWithT(t)
	b, _ := repo(t)
	path, err := b.ferry(context.Background())
	g.Expect(err).NotTo(HaveOccurred())
	files(t, b.Root, map[string]string{"cmd/ferry/main.go": "package main\n\nfunc main() { sail() }\n"})
	_, err = b.ferry(context.Background())
	g.Expect(err).To(MatchError(And(ContainSubstring("build ferry"), ContainSubstring("undefined: sail"))))
	g.Expect(path).To(BeAnExistingFile())
	left, err := filepath.Glob(filepath.Join(b.Home(), "bin", ".new-*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
}

func TestReadyMadeBinariesAreTaken(t *testing.T) {
	g := NewWithT(t)
	b, said := repo(t)
	assets := t.TempDir()
	files(t, assets, map[string]string{"tiny": "#!/bin/sh\n"})
	t.Setenv(AssetsEnv, assets)
	binaries := Binaries{}
	g.Expect(b.tool(context.Background(), small, binaries)).To(Succeed())
	g.Expect(binaries["tiny"]).To(Equal(filepath.Join(assets, "tiny")))
	g.Expect(said.String()).To(BeEmpty())
}

func TestABuildEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	b, _ := repo(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.ferry(ctx)
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestFindRoot(t *testing.T) {
	g := NewWithT(t)
	b, _ := repo(t)
	g.Expect(FindRoot(filepath.Join(b.Root, "playground", "tools", "small"))).To(Equal(b.Root), "the tool's go.mod is not Ferry's")
	_, err := FindRoot(t.TempDir())
	g.Expect(err).To(MatchError(ContainSubstring("inside Ferry's repository")))
}

func TestTheKubernetesVersionIsStamped(t *testing.T) {
	g := NewWithT(t)
	g.Expect(kubernetesFlags()).To(ContainSubstring(
		"-X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"))
	root, err := FindRoot(".")
	g.Expect(err).NotTo(HaveOccurred())
	for _, folder := range []string{"kubernetes", "kubectl"} {
		pins, err := os.ReadFile(filepath.Join(root, "playground", "tools", folder, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(pins)).To(ContainSubstring("k8s.io/kubernetes "+kubernetesVersion), "the stamp is the version that is pinned")
	}
}

func TestEditsHaveToBeWhereTheyWere(t *testing.T) {
	g := NewWithT(t)
	s := source{module: "m", edits: []edit{{"main.go", "8080", "0"}, {"other.go", "a", "b"}}}
	g.Expect(s.apply("main.go", "port 8080 a")).To(Equal("port 0 a"))
	for _, text := range []string{"port 9090", "port 8080 or 8080"} {
		_, err := s.apply("main.go", text)
		g.Expect(err).To(MatchError(errMoved), text)
	}
}

func TestOperatorsHaveTheirPins(t *testing.T) {
	g := NewWithT(t)
	_, err := (&Builder{Root: t.TempDir()}).Operator(t.Context(), "spark")
	g.Expect(err).To(MatchError(ContainSubstring(`"spark"`)))
	for name, o := range operators {
		pins, err := os.ReadFile(filepath.Join("..", "tools", name, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(pins)).To(And(ContainSubstring("module ferry.dev/ferry/playground/tools/"+name+"\n"), ContainSubstring("\t"+o.module+" v")), name)
	}
}

// TestOperatorsShareKueuesLibraries: what Kueue's build has compiled is not compiled again, which is most of an operator.
func TestOperatorsShareKueuesLibraries(t *testing.T) {
	g := NewWithT(t)
	versions := func(tool string) map[string]string {
		pins, err := os.ReadFile(filepath.Join("..", "tools", tool, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())
		found := map[string]string{}
		for line := range strings.Lines(string(pins)) {
			if fields := strings.Fields(line); len(fields) > 1 {
				found[fields[0]] = fields[1]
			}
		}
		return found
	}
	kueue := versions("kueue")
	for name := range operators {
		if name == "training-operator" {
			continue // too old to compile with them
		}
		for _, library := range []string{"k8s.io/api", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "golang.org/x/net", "google.golang.org/protobuf"} {
			if version, has := versions(name)[library]; has {
				g.Expect(version).To(Equal(kueue[library]), "%s of %s", library, name)
			}
		}
	}
}
