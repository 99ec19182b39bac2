package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/audit"
)

// These tests connect Ferry to the manager itself, under another name: as no job is ever sent there, they disturb
// nobody. A second name for w1 would make Ferry take the copies there for strays.

func TestClusterHealsWhenItsSecretComes(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	s.addCluster(s.namespace, kueue.SecretLocationType)
	s.awaitActive(metav1.ConditionFalse, "BadKubeConfig", s.namespace)
	s.putSecret(s.kubeconfig(s.account("reader"), nil))
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
	s.awaitEvent(metav1.NamespaceDefault, "Connected", s.namespace)
}

func TestClusterWithUnusableKubeconfigIsUsedNoMore(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	token := s.account("reader")
	good := s.kubeconfig(token, nil)
	s.putSecret(good)
	s.addCluster(s.namespace, kueue.SecretLocationType)
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
	s.Expect(s.requestsBy("reader", time.Time{})).To(BeNumerically(">", 0))

	for name, bad := range map[string][]byte{
		"not YAML": []byte("{this is no kubeconfig"),
		"no server": s.kubeconfig(token, func(c *clientcmdapi.Config) {
			c.Clusters["it"].Server = ""
		}),
		"exec plugin": s.kubeconfig(token, func(c *clientcmdapi.Config) {
			c.AuthInfos["it"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/true", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			}}
		}),
		"insecure TLS": s.kubeconfig(token, func(c *clientcmdapi.Config) {
			c.Clusters["it"].InsecureSkipTLSVerify, c.Clusters["it"].CertificateAuthorityData = true, nil
		}),
	} {
		s.putSecret(bad)
		want := map[string][2]string{
			"not YAML": {"BadKubeConfig", "not YAML"}, "no server": {"BadKubeConfig", "server URL is required"},
			"exec plugin": {"InsecureKubeConfig", "exec plugins are not allowed"}, "insecure TLS": {"InsecureKubeConfig", "insecure TLS verification is not allowed"},
		}[name]
		s.awaitActive(metav1.ConditionFalse, want[0], want[1])
		since := time.Now()
		s.Consistently(func() int { return s.requestsBy("reader", since) }).Should(BeZero(), "%s: the old connection is not used", name)
	}
	s.putSecret(good)
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
}

func TestRotatedTokenIsTakenUp(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	s.putSecret(s.kubeconfig(s.account("old"), nil))
	s.addCluster(s.namespace, kueue.SecretLocationType)
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
	old := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.CredentialsNamespace(), Name: s.namespace + "-old"}}
	s.Expect(manager().Delete(s.ctx, old)).To(Succeed())
	s.awaitActive(metav1.ConditionFalse, "ClientConnectionFailed", "401")
	s.putSecret(s.kubeconfig(s.account("new"), nil))
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
}

func TestKubeconfigFromAPath(t *testing.T) {
	t.Parallel()
	s := bareSite(t)
	file := filepath.Join(fleet.Ferry().KubeconfigDir, s.namespace)
	s.addCluster(file, kueue.PathLocationType)
	s.awaitActive(metav1.ConditionFalse, "BadKubeConfig", file)
	s.Expect(os.WriteFile(file, s.kubeconfig(s.account("reader"), nil), 0o600)).To(Succeed())
	s.awaitActive(metav1.ConditionTrue, "Active", "Connected")
	s.Expect(os.WriteFile(file, []byte("nothing of use"), 0o600)).To(Succeed())
	s.awaitActive(metav1.ConditionFalse, "BadKubeConfig", "failed to parse kubeconfig")

	outside := filepath.Join(t.TempDir(), "kubeconfig")
	s.Expect(os.WriteFile(outside, s.kubeconfig(s.account("another"), nil), 0o600)).To(Succeed())
	update(s, "manager", s.cluster(), func(c *kueue.MultiKueueCluster) { c.Spec.ClusterSource.KubeConfig.Location = outside })
	s.awaitActive(metav1.ConditionFalse, "BadKubeConfig", "not under")
}

// cluster is this site's own MultiKueueCluster.
func (s *site) cluster() *kueue.MultiKueueCluster {
	return &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
}

func (s *site) addCluster(location string, kind kueue.LocationType) {
	s.t.Helper()
	cluster := s.cluster()
	cluster.Spec.ClusterSource.KubeConfig = &kueue.KubeConfig{Location: location, LocationType: kind}
	s.Expect(manager().Create(s.ctx, cluster)).To(Succeed())
	s.t.Cleanup(func() {
		if err := manager().Delete(s.ctx, s.cluster()); err != nil {
			s.t.Logf("clean up: %v", err)
		}
	})
}

// awaitActive waits for the Active condition of this site's MultiKueueCluster.
func (s *site) awaitActive(status metav1.ConditionStatus, reason, message string) {
	s.t.Helper()
	s.awaitClusterActive(s.namespace, status, reason, message)
}

func (s *site) awaitClusterActive(name string, status metav1.ConditionStatus, reason, message string) {
	s.t.Helper()
	s.Eventually(func(g Gomega) {
		var cluster kueue.MultiKueueCluster
		g.Expect(manager().Get(s.ctx, client.ObjectKey{Name: name}, &cluster)).To(Succeed())
		g.Expect(meta.FindStatusCondition(cluster.Status.Conditions, kueue.MultiKueueClusterActive)).To(HaveValue(And(
			HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))))
	}).Should(Succeed(), "MultiKueueCluster %s", name)
}

// putSecret stores a kubeconfig under this site's name, where Ferry looks for it.
func (s *site) putSecret(kubeconfig []byte) {
	s.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: fleet.CredentialsNamespace(), Name: s.namespace},
		Data:       map[string][]byte{kueue.MultiKueueConfigSecretKey: kubeconfig},
	}
	if manager().Create(s.ctx, secret.DeepCopy()) == nil {
		return
	}
	update(s, "manager", secret, func(have *corev1.Secret) { have.Data = map[string][]byte{kueue.MultiKueueConfigSecretKey: kubeconfig} })
}

// account makes a ServiceAccount of this site on the manager that may do everything, and returns a token of it.
func (s *site) account(name string) (token string) { return s.accountOn("manager", name) }

// accountOn does the same in any cluster.
func (s *site) accountOn(cluster, name string) (token string) {
	s.t.Helper()
	name = s.namespace + "-" + name
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.CredentialsNamespace(), Name: name}}
	s.Expect(client.IgnoreAlreadyExists(on(cluster).Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account.Namespace}}))).To(Succeed())
	s.Expect(on(cluster).Create(s.ctx, account)).To(Succeed())
	s.Expect(on(cluster).Create(s.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}},
	})).To(Succeed())
	return s.tokenOn(cluster, account)
}

func (s *site) tokenOn(cluster string, account *corev1.ServiceAccount) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{}
	s.Expect(on(cluster).SubResource("token").Create(s.ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// kubeconfig leads to the manager with a token, after an edit, if any.
func (s *site) kubeconfig(token string, edit func(*clientcmdapi.Config)) []byte {
	s.t.Helper()
	way := fleet.Manager().RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: way.Host, CertificateAuthorityData: way.CAData}
	config.AuthInfos["it"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	if edit != nil {
		edit(config)
	}
	data, err := clientcmd.Write(*config)
	s.Expect(err).NotTo(HaveOccurred())
	return data
}

// requestsBy counts the requests on the manager of an account of this site.
func (s *site) requestsBy(account string, since time.Time) int {
	s.t.Helper()
	user := "system:serviceaccount:" + fleet.CredentialsNamespace() + ":" + s.namespace + "-" + account
	counts, err := audit.CountRequests(fleet.Manager().AuditLog(), since, func(r audit.Request) bool { return r.User == user })
	s.Expect(err).NotTo(HaveOccurred())
	return counts.Total()
}
