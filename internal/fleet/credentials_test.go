package fleet

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"pgregory.net/rapid"
)

const secretToken = "s3cr3t-t0k3n"

// goodConfig is a kubeconfig that is accepted; change breaks it.
func goodConfig(change func(*api.Config)) []byte {
	config := api.NewConfig()
	config.Clusters["c1"] = &api.Cluster{Server: "https://worker1.example:6443"}
	config.AuthInfos["u1"] = &api.AuthInfo{Token: secretToken}
	config.Contexts["x1"] = &api.Context{Cluster: "c1", AuthInfo: "u1"}
	config.CurrentContext = "x1"
	change(config)
	data, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return data
}

// incomplete are those of forbidden that nobody could use; the others are refused.
var incomplete = []string{"no server", "no current-context", "unknown current-context", "unknown cluster", "unknown user"}

// forbidden are the changes that make a kubeconfig refused, with what the error must name.
var forbidden = map[string]struct {
	change func(*api.Config)
	names  []string
}{
	"insecure-skip-tls-verify": {
		func(c *api.Config) { c.Clusters["c1"].InsecureSkipTLSVerify = true },
		[]string{"insecure TLS verification is not allowed for cluster c1", "certificate-authority-data"}},
	"certificate-authority": {
		func(c *api.Config) { c.Clusters["c1"].CertificateAuthority = "/etc/ca.crt" },
		[]string{"certificate-authority file paths are not allowed, use certificate-authority-data for cluster c1"}},
	"no server": {
		func(c *api.Config) { c.Clusters["c1"].Server = "" }, []string{"server URL is required for cluster c1"}},
	"server that is no URL": {
		func(c *api.Config) { c.Clusters["c1"].Server = "https://" }, []string{"untrusted server endpoint", "c1"}},
	"server with odd host": {
		func(c *api.Config) { c.Clusters["c1"].Server = "https://worker_1!:6443" }, []string{"untrusted server endpoint"}},
	"server without TLS": {
		func(c *api.Config) { c.Clusters["c1"].Server = "http://worker1.example" }, []string{"not encrypted", "https"}},
	"server with a password": {
		func(c *api.Config) { c.Clusters["c1"].Server = "https://me:pass@worker1.example" },
		[]string{"basic auth is not allowed", "c1"}},
	"tokenFile": {
		func(c *api.Config) { c.AuthInfos["u1"].TokenFile = "/var/run/token" },
		[]string{"tokenFile is not allowed", "user u1", "token"}},
	"tokenFile of a user that is not in use": {
		func(c *api.Config) { c.AuthInfos["u2"] = &api.AuthInfo{TokenFile: "/var/run/token"} },
		[]string{"tokenFile is not allowed", "user u2"}},
	"client-certificate": {
		func(c *api.Config) {
			c.AuthInfos["u1"] = &api.AuthInfo{ClientCertificate: "/etc/shadow", ClientKeyData: []byte("x")}
		},
		[]string{"client-certificate file paths are not allowed", "client-certificate-data", "user u1"}},
	"client-key": {
		func(c *api.Config) {
			c.AuthInfos["u1"] = &api.AuthInfo{ClientKey: "/etc/shadow", ClientCertificateData: []byte("x")}
		},
		[]string{"client-key file paths are not allowed", "client-key-data", "user u1"}},
	"exec": {
		func(c *api.Config) {
			c.AuthInfos["u1"].Exec = &api.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: api.NeverExecInteractiveMode}
		},
		[]string{"exec plugins are not allowed", "user u1", "token"}},
	"auth-provider": {
		func(c *api.Config) { c.AuthInfos["u1"].AuthProvider = &api.AuthProviderConfig{Name: "oidc"} },
		[]string{"auth providers are not allowed", "user u1"}},
	"username": {
		func(c *api.Config) { c.AuthInfos["u1"] = &api.AuthInfo{Username: "me", Password: secretToken} },
		[]string{"basic auth is not allowed", "user u1"}},
	"no current-context": {
		func(c *api.Config) { c.CurrentContext = "" }, []string{"current-context"}},
	"unknown current-context": {
		func(c *api.Config) { c.CurrentContext = "x9" }, []string{"current-context", "x9", "x1"}},
	"unknown cluster": {
		func(c *api.Config) { c.Contexts["x1"].Cluster = "c9" }, []string{"context x1", "c9", "c1"}},
	"unknown user": {
		func(c *api.Config) { c.Contexts["x1"].AuthInfo = "u9" }, []string{"context x1", "u9", "u1"}},
}

func TestForbiddenKubeConfigs(t *testing.T) {
	for name, test := range forbidden {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cfg, fingerprint, reason, err := ParseKubeConfig(goodConfig(test.change), false)
			g.Expect(cfg).To(BeNil())
			g.Expect(fingerprint).To(BeEmpty())
			if slices.Contains(incomplete, name) {
				g.Expect(reason).To(Equal("BadKubeConfig"))
			} else {
				g.Expect(reason).To(Equal("InsecureKubeConfig"))
			}
			g.Expect(err).To(HaveOccurred())
			for _, part := range test.names {
				g.Expect(err.Error()).To(ContainSubstring(part))
			}
			g.Expect(err.Error()).NotTo(ContainSubstring(secretToken))
		})
	}
}

func TestAcceptedKubeConfigs(t *testing.T) {
	for name, change := range map[string]func(*api.Config){
		"token":       func(*api.Config) {},
		"IP address":  func(c *api.Config) { c.Clusters["c1"].Server = "https://10.0.0.1:6443" },
		"IPv6":        func(c *api.Config) { c.Clusters["c1"].Server = "https://[fd00::1]:6443" },
		"upper case":  func(c *api.Config) { c.Clusters["c1"].Server = "https://Worker1.Example:6443" },
		"CA data":     func(c *api.Config) { c.Clusters["c1"].CertificateAuthorityData = []byte("ca") },
		"impersonate": func(c *api.Config) { c.AuthInfos["u1"].Impersonate = "ferry" },
		"client certificate data": func(c *api.Config) {
			c.AuthInfos["u1"] = &api.AuthInfo{ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")}
		},
		"a plugin that is not in use": func(c *api.Config) {
			c.AuthInfos["u2"] = &api.AuthInfo{Exec: &api.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cfg, fingerprint, reason, err := ParseKubeConfig(goodConfig(change), false)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reason).To(BeEmpty())
			g.Expect(cfg.Host).To(HavePrefix("https://"))
			g.Expect(fingerprint).To(HaveLen(64))
		})
	}
}

func TestFingerprintFollowsContent(t *testing.T) {
	g := NewWithT(t)
	print := func(token string) string {
		_, fingerprint, _, err := ParseKubeConfig(goodConfig(func(c *api.Config) { c.AuthInfos["u1"].Token = token }), false)
		g.Expect(err).NotTo(HaveOccurred())
		return fingerprint
	}
	g.Expect(print("a")).To(Equal(print("a")))
	g.Expect(print("a")).NotTo(Equal(print("b")))
}

func TestAllowInsecureAllowsOnlyMissingTLS(t *testing.T) {
	allowed := map[string]bool{"insecure-skip-tls-verify": true, "server without TLS": true}
	for name, test := range forbidden {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := ParseKubeConfig(goodConfig(test.change), true)
			if (err == nil) != allowed[name] {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestNotAKubeConfig(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "blank": " \n", "no entries": "apiVersion: v1\nkind: Config\n", "text": "test", "JSON": `{"a":1}`, "a list": "- a\n- b", "not YAML": "a: [" + secretToken,
		"null users": "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: null\n", "binary": "\x00\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, _, reason, err := ParseKubeConfig([]byte(data), false)
			g.Expect(err).To(HaveOccurred())
			g.Expect(reason).To(Equal("BadKubeConfig"))
			g.Expect(err.Error()).NotTo(ContainSubstring(secretToken))
		})
	}
}

// TestNothingForbiddenGetsThrough mixes a good kubeconfig with one forbidden thing and random harmless ones.
func TestNothingForbiddenGetsThrough(t *testing.T) {
	var names []string
	for name := range forbidden {
		names = append(names, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.SampledFrom(names).Draw(t, "bad")
		data := goodConfig(func(c *api.Config) {
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				name := rapid.StringMatching(`[a-z]{3,8}`).Draw(t, "name")
				c.Clusters[name] = &api.Cluster{Server: "https://" + name + ".example"}
				c.AuthInfos[name] = &api.AuthInfo{Token: name}
				c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
			}
			c.Clusters["c1"].ProxyURL = rapid.SampledFrom([]string{"", "http://proxy.example:3128"}).Draw(t, "proxy")
			c.Clusters["c1"].TLSServerName = rapid.SampledFrom([]string{"", "other"}).Draw(t, "tls name")
			forbidden[bad].change(c)
		})
		if cfg, _, _, err := ParseKubeConfig(data, false); err == nil || cfg != nil {
			t.Fatalf("%s got through", bad)
		}
	})
}

func FuzzParseKubeConfig(f *testing.F) {
	f.Add(goodConfig(func(*api.Config) {}))
	for _, test := range forbidden {
		f.Add(goodConfig(test.change))
	}
	f.Add([]byte("users: [{name: u, user: {client-certificate-data: " + base64.StdEncoding.EncodeToString([]byte("x")) + "}}]"))
	f.Add([]byte(strings.Repeat("[", 1000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, fingerprint, reason, err := ParseKubeConfig(data, false)
		if (err == nil) != (cfg != nil) || (err == nil) != (fingerprint != "") || (err == nil) != (reason == "") {
			t.Fatalf("half an answer: %v %q %q %v", cfg, fingerprint, reason, err)
		}
		if cfg != nil && (cfg.Insecure || cfg.BearerTokenFile != "" || cfg.CAFile != "" || cfg.CertFile != "" ||
			cfg.KeyFile != "" || cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.Username != "") {
			t.Fatalf("got through: %s", cfg)
		}
	})
}
