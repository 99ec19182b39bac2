package playground

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/proxy"
)

const (
	ferryNamespace = "ferry-system"
	ferryAccount   = "ferry"
	// tokenSeconds outlives every playground.
	tokenSeconds = 30 * 24 * 3600
)

// dispatcher is who reaches from the manager into the workers: Ferry, or stock MultiKueue.
type dispatcher struct{ namespace, account string }

func (p *Playground) dispatcher() dispatcher {
	if p.options.StockMultiKueue {
		return dispatcher{namespace: kueueNamespace, account: "multikueue"}
	}
	return dispatcher{namespace: ferryNamespace, account: ferryAccount}
}

// CredentialsNamespace is where the manager keeps the Secrets <worker>-kubeconfig.
func (p *Playground) CredentialsNamespace() string { return p.dispatcher().namespace }

// connectWorkers gives the manager a way into each worker: a proxy, an account with few rights, a kubeconfig in a
// Secret, and the MultiKueueCluster that names it.
func (p *Playground) connectWorkers(ctx context.Context) error {
	if err := p.manager.ensureNamespace(ctx, p.dispatcher().namespace); err != nil {
		return err
	}
	return each(ctx, p.workers, p.connect)
}

func (p *Playground) connect(ctx context.Context, w *Cluster) error {
	link, err := p.openLink(w)
	if err != nil {
		return err
	}
	return p.giveAccess(ctx, w, link)
}

func (p *Playground) giveAccess(ctx context.Context, w *Cluster, link *proxy.Proxy) error {
	d := p.dispatcher()
	role, err := p.workerRole()
	if err != nil {
		return err
	}
	if err := w.account(ctx, d, role); err != nil {
		return err
	}
	token, err := w.token(ctx, d)
	if err != nil {
		return err
	}
	kubeconfig, err := w.kubeconfig("https://"+link.Addr(), &clientcmdapi.AuthInfo{Token: token})
	if err != nil {
		return err
	}
	name := w.Name + "-kubeconfig"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: name},
		Data:       map[string][]byte{kueue.MultiKueueConfigSecretKey: kubeconfig},
	}
	cluster := &kueue.MultiKueueCluster{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name},
		Spec: kueue.MultiKueueClusterSpec{ClusterSource: kueue.ClusterSource{
			KubeConfig: &kueue.KubeConfig{Location: name, LocationType: kueue.SecretLocationType},
		}},
	}
	return p.manager.create(ctx, secret, cluster)
}

func (p *Playground) openLink(w *Cluster) (*proxy.Proxy, error) {
	port, err := p.ports.Port()
	if err != nil {
		return nil, err
	}
	link, err := proxy.New(fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", w.ports.apiserver))
	if err != nil {
		return nil, fmt.Errorf("open the link to %s: %w", w.Name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[w.Name] = link
	return link, nil
}

// account makes a ServiceAccount and the role objects that speak of it.
func (c *Cluster) account(ctx context.Context, d dispatcher, role []*unstructured.Unstructured) error {
	if err := c.ensureNamespace(ctx, d.namespace); err != nil {
		return err
	}
	if err := manifest.InNamespace(d.namespace, role); err != nil {
		return err
	}
	objects := append([]*unstructured.Unstructured{manifest.Object("v1", "ServiceAccount", d.namespace, d.account)}, role...)
	return c.apply(ctx, objects...)
}

func (c *Cluster) token(ctx context.Context, d dispatcher) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.account}}
	var token string
	err := insist(ctx, fmt.Sprintf("a token for %s on %s", client.ObjectKeyFromObject(account), c.Name), func(ctx context.Context) error {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds)}}
		err := c.client.SubResource("token").Create(ctx, account, request)
		token = request.Status.Token
		return err
	}, c.apiserver)
	return token, err
}

//go:embed multikueuerole.yaml
var multiKueueRole []byte

// workerRole is what the dispatcher may do on a worker: for Ferry, what its operators apply there.
func (p *Playground) workerRole() ([]*unstructured.Unstructured, error) {
	if p.options.StockMultiKueue {
		return manifest.Parse(multiKueueRole)
	}
	return manifest.Dir(filepath.Join(p.builder.Root, "config", "worker"))
}
