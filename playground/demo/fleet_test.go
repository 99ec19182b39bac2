package demo

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"ferry.dev/ferry/playground"
)

func TestClosingLinesNameAKubectlThatThereIs(t *testing.T) {
	status := playground.Status{Name: playground.DefaultName, Clusters: []playground.ClusterStatus{{Name: playground.ManagerName, Kubeconfig: "/k"}}}
	with := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(with, "kubectl"), []byte("#!/bin/sh\n"), 0o755)).To(Succeed())
	for name, c := range map[string]struct{ path, playground, want string }{
		"a kubectl":       {with, playground.DefaultName, "  export KUBECONFIG=/k\n  kubectl get jobs -n team\n"},
		"none":            {"", playground.DefaultName, "  go run ./playground/cmd/playground kubectl get jobs -n team\n"},
		"none, by a name": {"", "second", "  go run ./playground/cmd/playground kubectl --name second get jobs -n team\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			status.Name = c.playground
			NewWithT(t).Expect((&fleet{status: status}).lookAround(terms{resources: "jobs"})).To(ContainSubstring(c.want))
		})
	}
}
