package profile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	testclock "k8s.io/utils/clock/testing"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// script is a plugin that leaves a line in a file for each time that it runs.
type script struct {
	*Plugins
	calls string
	clock *testclock.FakePassiveClock
}

func newScript(t *testing.T, does string) *script {
	t.Helper()
	s := &script{calls: filepath.Join(t.TempDir(), "calls"), clock: testclock.NewFakePassiveClock(time.Now())}
	s.Plugins = &Plugins{Clock: s.clock, Providers: []access.Provider{{Name: "ours", ExecConfig: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", "echo >> $CALLS; " + does}, ProvideClusterInfo: true,
		Env: []clientcmdapi.ExecEnvVar{{Name: "CALLS", Value: s.calls}},
	}}}}
	return s
}

func (s *script) ran() int {
	lines, _ := os.ReadFile(s.calls)
	return strings.Count(string(lines), "\n")
}

func profileOf(name, server, provider string) *inventory.ClusterProfile {
	p := &inventory.ClusterProfile{}
	p.Name = name
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: provider, Cluster: clientcmdv1.Cluster{Server: server, CertificateAuthorityData: []byte("ca")}}}
	return p
}

// await asks until the plugin has come to an end.
func (s *script) await(g Gomega, p *inventory.ClusterProfile) (found Access, err error) {
	g.Eventually(func() bool { found, err = s.Access(p, false); return errors.Is(err, ErrPending) }, "30s").Should(BeFalse())
	return found, err
}

func prints(expires time.Time) string {
	return fmt.Sprintf(`echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "s3cr3t", "expirationTimestamp": %q}}'`, expires.UTC().Format(time.RFC3339))
}

// TestCredentialIsKeptAndRenewed: a plugin runs once for all profiles of a server, until four fifths of what it found are over.
func TestCredentialIsKeptAndRenewed(t *testing.T) {
	g := NewWithT(t)
	s := newScript(t, prints(time.Now().Add(time.Hour)))
	told := make(chan struct{}, 9)
	s.Ready = func() { told <- struct{}{} }
	one, another := profileOf("one", "https://w1.example:6443", "ours"), profileOf("another", "https://w1.example:6443", "ours")
	_, err := s.Access(one, false)
	g.Expect(err).To(MatchError(ErrPending), "nobody waits for a plugin")
	g.Eventually(told, "30s").Should(Receive())
	first, err := s.Access(one, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Config.BearerToken).To(Equal("s3cr3t"))
	g.Expect(first.Config.ExecProvider).To(BeNil())
	g.Expect(first.Config.Proxy).To(BeNil())
	second, err := s.Access(another, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Fingerprint).To(Equal(first.Fingerprint))
	g.Expect(s.ran()).To(Equal(1))

	s.clock.SetTime(first.Next.Add(-time.Second))
	_, err = s.Access(one, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.ran()).To(Equal(1))
	s.clock.SetTime(first.Next)
	_, err = s.Access(one, false)
	g.Expect(err).NotTo(HaveOccurred(), "the old one is good for the rest of its life")
	g.Eventually(told, "30s").Should(Receive())
	g.Expect(s.ran()).To(Equal(2))

	_, err = s.Access(profileOf("elsewhere", "https://w2.example:6443", "ours"), false)
	g.Expect(err).To(MatchError(ErrPending), "another server has another credential")
}

// TestExpiredCredentialIsNotUsed: where renewing fails, the reason shows once the old one is of no more use.
func TestExpiredCredentialIsNotUsed(t *testing.T) {
	g := NewWithT(t)
	s := newScript(t, `[ "$(wc -l < $CALLS)" = 1 ] || { echo no more >&2; exit 3; }; `+prints(time.Now().Add(time.Hour)))
	p := profileOf("one", "https://w1.example:6443", "ours")
	found, err := s.await(g, p)
	g.Expect(err).NotTo(HaveOccurred())
	s.clock.SetTime(found.Next)
	_, err = s.Access(p, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(s.ran, "30s").Should(Equal(2))
	s.clock.SetTime(time.Now().Add(2 * time.Hour))
	g.Eventually(func() error { _, err := s.Access(p, false); return err }, "30s").Should(MatchError(And(ContainSubstring("exit status 3"), Not(ContainSubstring("no more")))))
}

// TestPluginsThatFail: the error says what is wrong, and never what was printed.
func TestPluginsThatFail(t *testing.T) {
	for name, c := range map[string]struct{ does, provider, want string }{
		"no such provider": {"true", "theirs", "name one of its access providers in multiKueue.clusterProfile.accessProviders"},
		"garbage":          {"echo s3cr3t", "ours", "printed no ExecCredential"},
		"no token":         {`echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {}}'`, "ours", "without a token"},
		"hangs":            {"sleep 60", "ours", "did not answer in time"},
		"fails":            {"echo s3cr3t; echo s3cr3t >&2; exit 1", "ours", "exit status 1; run it by hand"},
		"is told":          {`echo "$KUBERNETES_EXEC_INFO" | grep -q https://w1.example && exit 7; exit 1`, "ours", "exit status 7"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newScript(t, c.does)
			s.Deadline = 500 * time.Millisecond
			if name != "hangs" {
				s.Deadline = time.Minute
			}
			_, err := s.await(g, profileOf("one", "https://w1.example:6443", c.provider))
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cr3t"))
		})
	}
}

// TestDoubtedCredentialIsFetchedAnew: one that was revoked does not say so; but a new one is not doubted at once.
func TestDoubtedCredentialIsFetchedAnew(t *testing.T) {
	g := NewWithT(t)
	s := newScript(t, prints(time.Now().Add(time.Hour)))
	p := profileOf("one", "https://w1.example:6443", "ours")
	_, err := s.await(g, p)
	g.Expect(err).NotTo(HaveOccurred())
	for after, runs := range []int{1, 1, 2} {
		s.clock.SetTime(s.clock.Now().Add(time.Duration(after) * 15 * time.Second))
		_, err := s.Access(p, true)
		g.Expect(err).NotTo(HaveOccurred(), "the old one is all there is")
		g.Eventually(s.ran, "30s").Should(Equal(runs))
	}
}

// TestNobodysCredentialIsForgotten: a cluster that nobody asks for any more leaves no credential in memory.
func TestNobodysCredentialIsForgotten(t *testing.T) {
	g := NewWithT(t)
	s := newScript(t, prints(time.Now().Add(time.Hour)))
	_, err := s.await(g, profileOf("one", "https://w1.example:6443", "ours"))
	g.Expect(err).NotTo(HaveOccurred())
	s.clock.SetTime(s.clock.Now().Add(keptFor + time.Second))
	_, _ = s.Access(profileOf("another", "https://w2.example:6443", "ours"), false)
	s.mu.Lock()
	defer s.mu.Unlock()
	g.Expect(s.runs).To(HaveLen(1))
}

// TestWhatTheProfileSays: of a cluster, also what the library leaves out, and by its provider's deprecated list too.
func TestWhatTheProfileSays(t *testing.T) {
	g := NewWithT(t)
	s := newScript(t, prints(time.Now().Add(time.Hour)))
	p := profileOf("one", "https://w1.example:6443", "theirs")
	p.Status.CredentialProviders = []inventory.CredentialProvider{{Name: "ours", Cluster: clientcmdv1.Cluster{Server: "https://10.0.0.1:6443", TLSServerName: "w1.example"}}}
	found, err := s.await(g, p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Config.Host).To(Equal("https://10.0.0.1:6443"))
	g.Expect(found.Config.ServerName).To(Equal("w1.example"))
}
