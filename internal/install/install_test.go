package install_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/internal/install"
	"ferry.dev/ferry/internal/kinds"
)

var update = flag.Bool("update", false, "rewrite the manifests in config/ instead of comparing with them")

// TestGoldenManifests: what config/ has is what the table of kinds says.
func TestGoldenManifests(t *testing.T) {
	rows := kinds.NewTable(kinds.Frameworks()).Rows()
	for file, want := range map[string]string{
		"../../config/worker/worker.yaml":     install.Worker(rows),
		"../../config/rbac/cluster_role.yaml": install.ManagerRole(rows),
		"../../config/webhook/manifests.yaml": install.Webhooks(rows),
	} {
		if *update {
			NewWithT(t).Expect(os.WriteFile(file, []byte(want), 0o644)).To(Succeed())
			continue
		}
		got, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(got)).To(Equal(want), "%s is stale; make golden rewrites it", file)
	}
}

func TestOnlyTheKindsAskedFor(t *testing.T) {
	g := NewWithT(t)
	rows := kinds.NewTable([]string{"batch/job", "kubeflow.org/mpijob", "kubeflow.org/tfjob"}).Rows()
	worker := install.Worker(rows)
	g.Expect(worker).To(And(ContainSubstring("resources: [jobs]"), ContainSubstring("resources: [tfjobs, mpijobs]"), Not(ContainSubstring("jobsets"))))
	g.Expect(strings.Count(worker, "apiGroups: [kubeflow.org]")).To(Equal(1))
	g.Expect(install.ManagerRole(rows)).To(ContainSubstring("resources: [tfjobs/status, mpijobs/status]"))
	g.Expect(strings.Count(install.Webhooks(rows), ".ferry.dev\n")).To(Equal(len(rows)))
}

func TestNoKindAtAll(t *testing.T) {
	g := NewWithT(t)
	g.Expect(install.Worker(nil)).To(And(ContainSubstring("workloads"), Not(ContainSubstring("jobs]"))))
	g.Expect(install.Webhooks(nil)).NotTo(ContainSubstring("path:"))
}

// TestThePodGateMayLookUpOwners: Kueue gates pods of all its kinds, whichever Ferry dispatches, and a pod whose owner
// cannot be read is refused.
func TestThePodGateMayLookUpOwners(t *testing.T) {
	for _, framework := range []string{"pod", "deployment", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"} {
		rows := kinds.NewTable([]string{framework}).Rows()
		first, _, _ := strings.Cut(install.ManagerRole(rows), "\n---\n")
		var role rbacv1.ClusterRole
		NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(first), &role)).To(Succeed())
		for _, owner := range []string{"deployments", "statefulsets"} {
			for _, verb := range []string{"get", "list", "watch"} {
				NewWithT(t).Expect(slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.APIGroups, "apps") && slices.Contains(r.Resources, owner) && slices.Contains(r.Verbs, verb)
				})).To(BeTrue(), "with %s only: %s %s", framework, verb, owner)
			}
		}
	}
	NewWithT(t).Expect(install.ManagerRole(kinds.NewTable([]string{"batch/job"}).Rows())).NotTo(ContainSubstring("apiGroups: [apps]"))
}
