package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// operatorTool is how a job operator is built; its folder under playground/tools and its binary have the operator's name.
type operatorTool struct {
	module, main string // main is the package within the module
	edits        []edit
	extra        []file // further files that the edits need, beside main's own
}

// operators are built when somebody asks for them.
var operators = map[string]operatorTool{
	"jobset":  {module: "sigs.k8s.io/jobset", main: "."},
	"lws":     {module: "sigs.k8s.io/lws", main: "cmd"},
	"trainer": {module: "github.com/kubeflow/trainer/v2", main: "cmd/trainer-controller-manager"},
	// Its certificates come from a Secret that a kubelet mounts under /tmp; here they are in its own folder already.
	"training-operator": {
		module: "github.com/kubeflow/training-operator", main: "cmd/training-operator.v1",
		edits: []edit{
			{"main.go", "defer close(certsReady)", "close(certsReady)"},
			{"main.go", "if err = cert.ManageCerts(mgr, certGenerationConfig, certsReady); err != nil {", "if _ = certGenerationConfig; err != nil {"},
			{"main.go", "Port: webhookServerPort,", `Host: "127.0.0.1", Port: webhookServerPort,`},
		},
	},
	// Its health check listens on port 8080, which only one process may have.
	"mpi-operator": {
		module: "github.com/kubeflow/mpi-operator", main: "cmd/mpi-operator",
		extra: []file{{"cmd/mpi-operator/app/server.go", "app/server.go"}},
		edits: []edit{
			{"main.go", `"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app"`, `"ferry.dev/ferry/playground/tools/mpi-operator/app"`},
			{"app/server.go", `fmt.Sprintf(":%d", healthCheckPort)`, `os.Getenv("HEALTH_ADDRESS")`},
		},
	},
	// Its webhooks, which are off by default, do not compile with the libraries of the others.
	"kuberay": {
		module: "github.com/ray-project/kuberay/ray-operator", main: ".",
		edits: []edit{
			{"main.go", `webhooks "github.com/ray-project/kuberay/ray-operator/pkg/webhooks/v1"`, ""},
			{"main.go", "webhooks.SetupRayClusterWebhookWithManager(mgr)", `fmt.Errorf("built without webhooks")`},
		},
	},
	// Its webhooks listen on port 9443, with certificates from a Secret as above. The metrics package is its module's own.
	"appwrapper": {
		module: "github.com/project-codeflare/appwrapper", main: "cmd",
		edits: []edit{
			{"main.go", "Port:    9443,", `Host: "127.0.0.1", Port: func() (port int) { fmt.Sscan(os.Getenv("WEBHOOK_PORT"), &port); return }(),`},
			{"main.go", `exitOnError(controller.SetupCertManagement(mgr, cfg.CertManagement, certsReady), "Unable to set up cert rotation")`, "close(certsReady)"},
			{"main.go", `"github.com/project-codeflare/appwrapper/internal/metrics"`, ""},
			{"main.go", "metrics.Register()", ""},
		},
	},
}

func (o operatorTool) tool(name string) tool {
	t := tool{
		folder: name, packages: map[string]string{name: strings.TrimSuffix(o.module+"/"+o.main, "/.")},
		ldflags: "-s -w", note: "this takes a minute or more the first time",
	}
	if len(o.edits) > 0 {
		files := slices.Concat([]file{{o.main + "/main.go", "main.go"}}, o.extra)
		t.adapted = &source{module: o.module, files: files, edits: o.edits}
	}
	return t
}

// Operator makes the binary of a job operator, if it is not up to date, and returns its path.
func (b *Builder) Operator(ctx context.Context, name string) (string, error) {
	t, ok := operators[name]
	if !ok {
		return "", fmt.Errorf("no recipe for operator %q in playground/build", name)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	binaries := Binaries{}
	if err := b.tool(ctx, t.tool(name), binaries); err != nil {
		return "", err
	}
	return binaries[name], nil
}

// OperatorDir is the folder of an operator's pinned module, with its CRDs and webhook manifests.
func (b *Builder) OperatorDir(ctx context.Context, name string) (string, error) {
	t, ok := operators[name]
	if !ok {
		return "", fmt.Errorf("no recipe for operator %q in playground/build", name)
	}
	b.mu.Lock()
	dir := b.dirs[name]
	b.mu.Unlock()
	if dir != "" {
		return dir, nil
	}
	dir, err := b.moduleDir(ctx, tool{folder: name}.dir(b.Root), t.module)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirs == nil {
		b.dirs = map[string]string{}
	}
	b.dirs[name] = dir
	return dir, nil
}
