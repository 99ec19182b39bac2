package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ParseKubeConfig turns a kubeconfig into a client configuration, if it is safe to use: it comes from whoever may
// write it on the manager, and must not make Ferry run programs, read files or talk without TLS. With allowInsecure,
// connections without TLS or without verifying the server are let through, nothing else.
//
// The fingerprint is the same for the same content. An error comes with the reason for the Active condition: whether
// the kubeconfig is not whole, or what it holds is refused. It names the entry at fault and what to use instead, and
// holds no secret.
func ParseKubeConfig(data []byte, allowInsecure bool) (cfg *rest.Config, fingerprint, reason string, err error) {
	cfg, err = parse(data, allowInsecure)
	var broken *brokenError
	switch {
	case errors.As(err, &broken):
		return nil, "", ReasonBadKubeConfig, err
	case err != nil:
		return nil, "", ReasonInsecureKubeConfig, err
	}
	sum := sha256.Sum256(data)
	return cfg, hex.EncodeToString(sum[:]), "", nil
}

// brokenError is what keeps a kubeconfig from being used by anyone.
type brokenError struct{ message string }

func (e *brokenError) Error() string { return e.message }

func broken(format string, args ...any) error {
	return &brokenError{fmt.Sprintf(format, args...)}
}

func parse(data []byte, allowInsecure bool) (*rest.Config, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, broken("the kubeconfig is empty: store the whole kubeconfig file")
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		// The parser's own words can quote the file, and with it a token.
		return nil, broken("failed to parse kubeconfig(apiconfig): it is not YAML of kind Config, store the whole kubeconfig file as it is")
	}
	if err := checkEntries(config, allowInsecure); err != nil {
		return nil, err
	}
	user, err := checkContext(config)
	if err != nil {
		return nil, err
	}
	if err := checkUser(user, config.AuthInfos[user]); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, broken("the kubeconfig cannot be used: %s", withoutFiles(err))
	}
	if err := CheckConfig(cfg, allowInsecure); err != nil {
		return nil, err
	}
	return cfg, nil
}

// checkEntries refuses what must not be in the file at all, in use or not, as Kueue does.
func checkEntries(config *api.Config, allowInsecure bool) error {
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		if user := config.AuthInfos[name]; user != nil && user.TokenFile != "" {
			return fmt.Errorf("tokenFile is not allowed: put the token itself under token for user %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		if err := checkCluster(name, config.Clusters[name], allowInsecure); err != nil {
			return err
		}
	}
	return nil
}

func checkCluster(name string, cluster *api.Cluster, allowInsecure bool) error {
	switch {
	case cluster == nil || cluster.Server == "":
		return broken("server URL is required for cluster %s", name)
	case cluster.InsecureSkipTLSVerify && !allowInsecure:
		return fmt.Errorf("insecure TLS verification is not allowed for cluster %s, "+
			"use certificate-authority-data instead of insecure-skip-tls-verify", name)
	case cluster.CertificateAuthority != "":
		return fmt.Errorf("certificate-authority file paths are not allowed, use certificate-authority-data for cluster %s", name)
	}
	return checkServer(name, cluster.Server)
}

func checkServer(name, server string) error {
	u, err := url.Parse(server)
	if err != nil || (u.Host == "" && u.Scheme != "" && strings.Contains(server, "://")) {
		return fmt.Errorf("untrusted server endpoint: server of cluster %s is not a URL, use https://HOST:PORT", name)
	}
	if u.User != nil {
		return fmt.Errorf("basic auth is not allowed: server of cluster %s holds a user, use a token or client-certificate-data", name)
	}
	return nil
}

// checkContext returns the name of the user of the current context.
func checkContext(config *api.Config) (user string, err error) {
	name := config.CurrentContext
	if name == "" {
		return "", broken("current-context is not set: name the context to use")
	}
	context, found := config.Contexts[name]
	if !found || context == nil {
		return "", broken("current-context names %q, and there is no such context: use one of %q",
			name, slices.Sorted(maps.Keys(config.Contexts)))
	}
	if _, found := config.Clusters[context.Cluster]; !found {
		return "", broken("context %s names the cluster %q, and there is no such cluster: use one of %q",
			name, context.Cluster, slices.Sorted(maps.Keys(config.Clusters)))
	}
	if u, found := config.AuthInfos[context.AuthInfo]; !found || u == nil {
		return "", broken("context %s names the user %q, and there is no such user: use one of %q",
			name, context.AuthInfo, slices.Sorted(maps.Keys(config.AuthInfos)))
	}
	return context.AuthInfo, nil
}

// checkUser refuses ways to log in that run programs or read files.
func checkUser(name string, user *api.AuthInfo) error {
	const instead = "use token, or client-certificate-data and client-key-data"
	switch {
	case user.Username != "" || user.Password != "":
		return fmt.Errorf("basic auth is not allowed: user %s has username or password, %s", name, instead)
	case user.Exec != nil:
		return fmt.Errorf("exec plugins are not allowed: user %s has exec, %s", name, instead)
	case user.AuthProvider != nil:
		return fmt.Errorf("auth providers are not allowed: user %s has auth-provider, %s", name, instead)
	case user.ClientCertificate != "":
		return fmt.Errorf("client-certificate file paths are not allowed, use client-certificate-data for user %s", name)
	case user.ClientKey != "":
		return fmt.Errorf("client-key file paths are not allowed, use client-key-data for user %s", name)
	}
	return nil
}

// CheckConfig looks at what is really going to be used, whatever the kubeconfig or the ClusterProfile looked like.
func CheckConfig(cfg *rest.Config, allowInsecure bool) error {
	if readsFiles(cfg) || cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.Username != "" || cfg.Password != "" {
		return errors.New("the kubeconfig must hold everything itself: no files, plugins or passwords")
	}
	u, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil || !validHost(u.Host) {
		return errors.New("untrusted server endpoint: the server is not a host name or IP address, use https://HOST:PORT")
	}
	if u.Scheme != "https" && !allowInsecure {
		return fmt.Errorf("untrusted server endpoint: %s is not encrypted, use https", u.Host)
	}
	return nil
}

func readsFiles(cfg *rest.Config) bool {
	tls := cfg.TLSClientConfig
	return cfg.BearerTokenFile != "" || tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != ""
}

func validHost(hostAndPort string) bool {
	host, _, err := net.SplitHostPort(hostAndPort)
	if err != nil {
		host = strings.Trim(hostAndPort, "[]")
	}
	return net.ParseIP(host) != nil || len(validation.IsDNS1123Subdomain(strings.ToLower(host))) == 0
}

// samePlace tells whether two configurations lead to the same server in the same way, and differ in who logs in at most.
func samePlace(a, b *rest.Config) bool {
	return equality.Semantic.DeepEqual(withoutLogin(a), withoutLogin(b))
}

func withoutLogin(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.BearerToken, cfg.Impersonate = "", rest.ImpersonationConfig{}
	cfg.CertData, cfg.KeyData = nil, nil
	return cfg
}

// withoutFiles gives the first line of an error of clientcmd, which says what is wrong without content of the file.
func withoutFiles(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
