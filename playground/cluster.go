package playground

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground/operator"
	"ferry.dev/ferry/playground/pki"
	"ferry.dev/ferry/playground/process"
)

// Cluster is one control plane with Kueue.
type Cluster struct {
	Name string // "manager", "w1", …

	p          *Playground
	dir        string
	ca         *pki.CA
	ports      ports
	apiserver  *process.Process
	restConfig *rest.Config
	client     client.Client

	operators map[string]operator.Place // guarded by Playground.operating
}

// ports are all the loopback ports of a cluster.
type ports struct {
	etcd, etcdPeer, apiserver, controllerManager, scheduler, kueueWebhook, kueueHealth int
}

func newCluster(p *Playground, name string) *Cluster {
	return &Cluster{Name: name, p: p, dir: filepath.Join(p.Dir(), name), operators: map[string]operator.Place{}}
}

// IsManager tells the manager from the workers.
func (c *Cluster) IsManager() bool { return c.Name == ManagerName }

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (c *Cluster) AdminKubeconfig() string { return filepath.Join(c.dir, "admin.kubeconfig") }

// RESTConfig is a copy of the administrator's access, without a client-side rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.restConfig) }

// Client is an uncached client of the administrator that knows Kubernetes' and Kueue's types.
func (c *Cluster) Client() client.Client { return c.client }

// AuditLog is the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return filepath.Join(c.dir, "audit.log") }

// Server is the address of the API server, without the proxy.
func (c *Cluster) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", c.ports.apiserver) }

// Component finds a process of this cluster, e.g. "kueue".
func (c *Cluster) Component(name string) *process.Process { return c.p.Component(c.Name + "/" + name) }

func (c *Cluster) file(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// grace is short: an API server with open watches would take a minute to end, and nothing gets lost.
const grace = 3 * time.Second

// run starts one of the cluster's components.
func (c *Cluster) run(name string, args ...string) (*process.Process, error) {
	return c.p.run(process.Spec{
		Name: c.Name + "/" + name,
		Path: c.p.binaries[name],
		Args: args,
		Dir:  c.file("run", name),
		Log:  c.file("logs", name+".log"),

		Grace: grace,
	})
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return fmt.Errorf("prepare %s: %w", c.Name, err)
	}
	if err := c.startAPI(ctx); err != nil {
		return err
	}
	if err := together(ctx, c.startController, c.startPods, c.startKueue); err != nil {
		return err
	}
	c.p.say("%s is ready", c.Name)
	return nil
}

// prepare makes everything that has to exist before the first process starts.
func (c *Cluster) prepare() error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	for _, port := range []*int{
		&c.ports.etcd, &c.ports.etcdPeer, &c.ports.apiserver, &c.ports.controllerManager,
		&c.ports.scheduler, &c.ports.kueueWebhook, &c.ports.kueueHealth,
	} {
		var err error
		if *port, err = c.p.ports.Port(); err != nil {
			return err
		}
	}
	if err := c.makeCertificates(); err != nil {
		return err
	}
	return c.makeClient()
}

func (c *Cluster) makeClient() error {
	var err error
	if c.restConfig, err = clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig()); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	c.restConfig.QPS = -1 // no limit: the API server is ours
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("fill the scheme: %w", err)
		}
	}
	if c.client, err = client.New(c.restConfig, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

// AwaitReady returns once the API server and Kueue's webhooks answer again, e.g. after a component was restarted.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	if err := await(ctx, c.apiserver.Name(), answers(c.Server()+"/readyz"), c.apiserver); err != nil {
		return err
	}
	kueue := c.Component("kueue")
	return await(ctx, kueue.Name()+"'s webhooks", c.kueueWebhooksAnswer, kueue, c.apiserver)
}
