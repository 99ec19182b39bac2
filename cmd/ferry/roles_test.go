package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestWorkerRole(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ferry.yaml")
	g.Expect(os.WriteFile(file, []byte("apiVersion: config.ferry.dev/v1alpha1\nkind: Configuration\nintegrations: {frameworks: [ray.io/rayjob]}\n"), 0o600)).To(Succeed())

	all, err := run("worker-role")
	g.Expect(err).NotTo(HaveOccurred())
	want, err := os.ReadFile("../../config/worker/worker.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(Equal(string(want)))

	some, err := run("worker-role", "--kinds", "jobset.x-k8s.io/jobset,batch/job")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(some).To(And(ContainSubstring("[jobsets]"), ContainSubstring("[jobs]"), Not(ContainSubstring("ray.io"))))

	configured, err := run("worker-role", "--config", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(configured).To(And(ContainSubstring("[rayjobs]"), Not(ContainSubstring("[jobs]"))))
}

// TestRolesOfCustomKinds: with a configuration the commands print what its custom kinds need too.
func TestRolesOfCustomKinds(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ferry.yaml")
	g.Expect(os.WriteFile(file, []byte(`apiVersion: config.ferry.dev/v1alpha1
kind: Configuration
integrations: {frameworks: [batch/job]}
multiKueue:
  externalFrameworks:
  - name: PipelineRun.v1.tekton.dev
  - {name: Workflow.v1alpha1.argoproj.io, managedBy: none, statusSubresource: false}
  - {name: Chaos.v1.example.com, resource: chaoses}
`), 0o600)).To(Succeed())
	worker, err := run("worker-role", "--config", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(worker).To(And(ContainSubstring("[pipelineruns]"), ContainSubstring("[workflows]"), ContainSubstring("[chaoses]"), ContainSubstring("[jobs]")))
	manager, err := run("manager-role", "--config", file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manager).To(And(
		ContainSubstring("resources: [pipelineruns/status]"), Not(ContainSubstring("workflows/status")),
		ContainSubstring("- apiGroups: [argoproj.io]\n  resources: [workflows]\n  verbs: [patch]"),
		ContainSubstring("path: /mutate-tekton.dev-v1-pipelinerun"), Not(ContainSubstring("mutate-argoproj"))))
}

func TestManagerRoleIsWhatTheManifestsSay(t *testing.T) {
	g := NewWithT(t)
	all, err := run("manager-role")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range []string{"../../config/rbac/cluster_role.yaml", "../../config/webhook/manifests.yaml"} {
		want, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(ContainSubstring(string(want)))
	}
}

func TestWorkerRoleRefusesBadInput(t *testing.T) {
	for _, args := range [][]string{{"--kinds", "nonsense"}, {"--config", "/does/not/exist"}, {"--kinds", "batch/job", "--config", "x"}, {"batch/job"}} {
		_, err := run(append([]string{"worker-role"}, args...)...)
		NewWithT(t).Expect(err).To(HaveOccurred(), "%v", args)
	}
}
