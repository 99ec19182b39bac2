package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/audit"
	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/test/fixtures"
)

// TestClusterProfile: a worker is found by a ClusterProfile, whose CRD comes late, and logged in to by a credential
// plugin, whose tokens are renewed while the connection stays.
func TestClusterProfile(t *testing.T) {
	s := bareSite(t)
	s.whole()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.CredentialsNamespace(), Name: s.namespace + "-plugin"}}
	plugin := s.newPlugin(s.accountOn("w1", "plugin"))
	s.reconfigure(plugin.section())
	cluster := s.cluster()
	cluster.Spec.ClusterSource.ClusterProfileRef = &kueue.ClusterProfileReference{Name: s.namespace}
	s.putOn("manager", cluster)
	s.awaitActive(metav1.ConditionFalse, "BadClusterProfile", "install their CRD")
	s.installProfiles()
	s.awaitActive(metav1.ConditionFalse, "BadClusterProfile", "not found")
	profile := s.profileOf("w1")
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
	s.installQueues(fixtures.OnWorkers(s.namespace))
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitComplete("train")
	s.Expect(s.workload(s, "train").Status.ClusterName).To(HaveValue(Equal(s.namespace)))

	since, calls := time.Now(), plugin.ran()
	s.Expect(os.WriteFile(plugin.token, []byte(s.tokenOn("w1", account)), 0o600)).To(Succeed())
	s.Eventually(plugin.ran).Should(BeNumerically(">=", calls+2), "renewed before it expires")
	s.submit("again", fixtures.RunsFor(time.Second))
	s.awaitComplete("again")
	s.Expect(s.watchesOn("w1", account, since)).To(BeZero(), "the connection and its caches stay")

	s.Expect(manager().Delete(s.ctx, profile)).To(Succeed())
	s.awaitActive(metav1.ConditionFalse, "BadClusterProfile", "not found")
}

// plugin is the credential plugin of test/credentialplugin, built.
type plugin struct{ binary, token, calls string }

func (s *site) newPlugin(token string) plugin {
	s.t.Helper()
	dir := s.t.TempDir()
	p := plugin{binary: filepath.Join(dir, "plugin"), token: filepath.Join(dir, "token"), calls: filepath.Join(dir, "calls")}
	out, err := exec.Command("go", "build", "-o", p.binary, "../credentialplugin").CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), string(out))
	s.Expect(os.WriteFile(p.token, []byte(token), 0o600)).To(Succeed())
	return p
}

func (p plugin) ran() int {
	lines, _ := os.ReadFile(p.calls)
	return bytes.Count(lines, []byte("\n"))
}

// section is what Ferry's configuration says of it.
func (p plugin) section() string {
	return fmt.Sprintf(`  clusterProfile:
    accessProviders:
    - name: test
      execConfig:
        apiVersion: client.authentication.k8s.io/v1
        command: %s
        env: [{name: PLUGIN_TOKEN_FILE, value: %s}, {name: PLUGIN_CALLS_FILE, value: %s}, {name: PLUGIN_GOOD_FOR, value: 6s}]
`, p.binary, p.token, p.calls)
}

// installProfiles makes the CRD of ClusterProfiles, from the module that has their API.
func (s *site) installProfiles() {
	s.t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	s.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "bases", "*clusterprofiles.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		objects, err := manifest.File(file)
		s.Expect(err).NotTo(HaveOccurred())
		for _, o := range objects {
			s.putOn("manager", o)
		}
	}
}

// profileOf describes a cluster as an inventory would.
func (s *site) profileOf(cluster string) client.Object {
	s.t.Helper()
	way := fleet.Worker(cluster).RESTConfig()
	profile := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"clusterManager": map[string]any{"name": "test"}},
	}}
	profile.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"})
	profile.SetNamespace(fleet.CredentialsNamespace())
	profile.SetName(s.namespace)
	s.Eventually(func() error { return client.IgnoreAlreadyExists(manager().Create(s.ctx, profile.DeepCopy())) }).Should(Succeed())
	update := func(g Gomega) {
		g.Expect(manager().Get(s.ctx, client.ObjectKeyFromObject(profile), profile)).To(Succeed())
		g.Expect(unstructured.SetNestedSlice(profile.Object, []any{map[string]any{"name": "test", "cluster": map[string]any{
			"server": way.Host, "certificate-authority-data": base64.StdEncoding.EncodeToString(way.CAData),
		}}}, "status", "accessProviders")).To(Succeed())
		g.Expect(manager().Status().Update(s.ctx, profile)).To(Succeed())
	}
	s.Eventually(update).Should(Succeed())
	return profile
}

// watchesOn counts how often an account began to watch a kind on a worker, which is how caches are read.
func (s *site) watchesOn(worker string, account *corev1.ServiceAccount, since time.Time) int {
	s.t.Helper()
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	counts, err := audit.CountRequests(fleet.Worker(worker).AuditLog(), since, func(r audit.Request) bool {
		return r.User == user && r.Verb == "watch"
	})
	s.Expect(err).NotTo(HaveOccurred())
	return counts.Total()
}
