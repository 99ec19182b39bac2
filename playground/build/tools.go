package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// tool is a pinned module under playground/tools and the main packages to build from it.
type tool struct {
	folder   string
	packages map[string]string // binary → main package
	ldflags  string
	note     string  // said before a long build
	adapted  *source // built instead of the one package, when the stock one cannot run here
}

const kubernetesVersion = "v1.36.3"

var tools = []tool{
	{
		folder:   "etcd",
		packages: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"},
		ldflags:  "-s -w",
	},
	{
		folder: "kubernetes",
		packages: map[string]string{
			"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
			"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
			"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
		},
		ldflags: kubernetesFlags(),
		note:    "this takes some minutes the first time",
	},
	{
		folder:   "kueue",
		packages: map[string]string{"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
		ldflags:  "-s -w",
		note:     "this takes some minutes the first time",
		adapted:  &kueueSource,
	},
	{
		folder:   "kwok",
		packages: map[string]string{"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
		ldflags:  "-s -w",
	},
}

// kubectl is built when somebody asks for it: most have one.
var kubectl = tool{
	folder:   "kubectl",
	packages: map[string]string{"kubectl": "k8s.io/kubernetes/cmd/kubectl"},
	ldflags:  kubernetesFlags(),
	note:     "about a minute the first time",
}

// Kubectl builds the kubectl of the clusters' version, unless it is there, and returns its path.
func (b *Builder) Kubectl(ctx context.Context) (string, error) {
	unlock, err := b.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	binaries := Binaries{}
	err = b.tool(ctx, kubectl, binaries)
	return binaries["kubectl"], err
}

// kubernetesFlags stamps the version: Kueue refuses to start against an API server that reports none.
func kubernetesFlags() string {
	number := strings.Split(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	flags := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
			pkg, kubernetesVersion, number[0], number[1])
	}
	return flags
}

func (t tool) dir(root string) string { return filepath.Join(root, "playground", "tools", t.folder) }

func (t tool) names() []string {
	var names []string
	for name := range t.packages {
		names = append(names, name)
	}
	return names
}

// sum changes whenever the tool's binaries have to be built again.
func (t tool) sum(root string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(t.dir(root), name))
		if err != nil {
			return "", fmt.Errorf("read the pins of %s: %w", t.folder, err)
		}
		h.Write(data)
	}
	fmt.Fprint(h, runtime.Version(), t.ldflags, recipe)
	if t.adapted != nil {
		fmt.Fprint(h, *t.adapted)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// recipe counts changes in how this package builds.
const recipe = 1

func isFerry(gomod string) bool {
	data, err := os.ReadFile(gomod)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		if strings.TrimSpace(string(line)) == "module ferry.dev/ferry" {
			return true
		}
	}
	return false
}
