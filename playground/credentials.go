package playground

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ferry.dev/ferry/playground/pki"
)

// Users of a cluster, as its audit log names them.
const (
	UserAdmin             = "admin" // the playground itself and whoever uses the admin kubeconfig
	UserControllerManager = "system:kube-controller-manager"
	UserScheduler         = "system:kube-scheduler"
	UserKueue             = "system:serviceaccount:kueue-system:kueue-controller-manager"
	UserKwok              = "kwok"
	UserFerry             = "system:serviceaccount:ferry-system:ferry" // on the manager and on the workers
	// UserMultiKueue is what the manager's Kueue is on the workers, with Options.StockMultiKueue.
	UserMultiKueue = "system:serviceaccount:kueue-system:multikueue"
)

const adminGroup = "system:masters"

// makeCertificates writes the cluster's certificates, and a kubeconfig for each of its components.
func (c *Cluster) makeCertificates() error {
	var err error
	if c.ca, err = pki.NewCA("playground " + c.Name); err != nil {
		return err
	}
	serving, err := c.ca.Serving("kube-apiserver", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	if err := serving.Write(c.file("pki"), "apiserver"); err != nil {
		return err
	}
	webhook, err := c.ca.Serving("kueue-webhook-service")
	if err != nil {
		return err
	}
	if err := webhook.Write(c.file("pki", "kueue"), "tls"); err != nil {
		return err
	}
	key, err := pki.NewKey()
	if err != nil {
		return err
	}
	for path, data := range map[string][]byte{c.file("pki", "ca.crt"): c.ca.PEM, c.file("pki", "sa.key"): key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return c.makeKubeconfigs()
}

func (c *Cluster) makeKubeconfigs() error {
	for user, file := range map[string]string{
		UserAdmin:             c.AdminKubeconfig(),
		UserControllerManager: c.file("pki", "kube-controller-manager.kubeconfig"),
		UserScheduler:         c.file("pki", "kube-scheduler.kubeconfig"),
		UserKueue:             c.file("pki", "kueue.kubeconfig"),
		UserKwok:              c.file("pki", "kwok.kubeconfig"),
	} {
		pair, err := c.ca.Client(user, adminGroup)
		if err != nil {
			return err
		}
		auth := &clientcmdapi.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key}
		data, err := c.kubeconfig(c.Server(), auth)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
		}
	}
	return nil
}

// kubeconfig is self-contained: no paths to other files, so that it may be handed to another cluster.
func (c *Cluster) kubeconfig(server string, auth *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.ca.PEM}
	config.AuthInfos[c.Name] = auth
	config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: c.Name}
	config.CurrentContext = c.Name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig for %s: %w", c.Name, err)
	}
	return data, nil
}
