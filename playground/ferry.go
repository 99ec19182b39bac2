package playground

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/pki"
	"ferry.dev/ferry/playground/process"
)

const ferryComponent = "ferry"

// FerryAddresses are what Options.FerryConfig may ask for.
type FerryAddresses struct {
	Namespace      string // where Ferry's Secrets are
	WebhookHost    string
	WebhookPort    int
	WebhookCertDir string // has tls.crt and tls.key
	HealthAddress  string // host:port
	MetricsAddress string // host:port
	KubeconfigDir  string // a folder for kubeconfigs of MultiKueueClusters with locationType Path
	Frameworks     []string
}

// DefaultFerryConfig lets Ferry run beside the clusters. It ends within the section workers: a caller may append more of
// that section, indented, and then further sections.
const DefaultFerryConfig = `apiVersion: config.ferry.dev/v1alpha1
kind: Configuration
namespace: {{.Namespace}}
health:
  healthProbeBindAddress: {{.HealthAddress}}
metrics:
  bindAddress: {{.MetricsAddress}}
  secureServing: false
webhook:
  host: {{.WebhookHost}}
  port: {{.WebhookPort}}
  certDir: {{.WebhookCertDir}}
integrations:
  frameworks:{{range .Frameworks}}
  - {{.}}{{end}}
workers:
  kubeConfigPathPrefix: {{.KubeconfigDir}}
`

// Ferry tells the addresses of Ferry; empty when it does not run here.
func (p *Playground) Ferry() FerryAddresses { return p.ferry }

// FerryMetrics is the URL of Ferry's metrics, "" when Ferry does not run here.
func (p *Playground) FerryMetrics() string {
	if p.ferry.MetricsAddress == "" {
		return ""
	}
	return "http://" + p.ferry.MetricsAddress + "/metrics"
}

// startFerry runs Ferry on the manager, as its ServiceAccount, and lets its webhooks take part.
func (p *Playground) startFerry(ctx context.Context) error {
	config, err := p.prepareFerry()
	if err != nil {
		return fmt.Errorf("prepare Ferry: %w", err)
	}
	kubeconfig, err := p.ferryKubeconfig(ctx)
	if err != nil {
		return err
	}
	ferry, err := p.run(process.Spec{
		Name: ferryComponent,
		Path: p.binaries["ferry"],
		Args: append([]string{"--kubeconfig", kubeconfig, "--config", config}, p.options.FerryArgs...),
		Dir:  p.ferryFile("run"),
		Log:  p.ferryFile("ferry.log"),
	})
	if err != nil {
		return err
	}
	if err := p.awaitFerry(ctx, ferry); err != nil {
		return err
	}
	if err := p.installFerryWebhooks(ctx); err != nil {
		return err
	}
	p.say("ferry is ready")
	return nil
}

// AwaitFerry returns once Ferry says that it is ready, e.g. after a restart.
func (p *Playground) AwaitFerry(ctx context.Context) error {
	ferry := p.Component(ferryComponent)
	if ferry == nil {
		return errors.New("this playground has no Ferry: set Options.Ferry")
	}
	return p.awaitFerry(ctx, ferry)
}

func (p *Playground) awaitFerry(ctx context.Context, ferry *process.Process) error {
	return await(ctx, ferry.Name(), answers("http://"+p.ferry.HealthAddress+"/readyz"), ferry, p.manager.apiserver)
}

func (p *Playground) ferryFile(parts ...string) string {
	return filepath.Join(append([]string{p.Dir(), "ferry"}, parts...)...)
}

// prepareFerry makes addresses, certificates and the config file.
func (p *Playground) prepareFerry() (config string, err error) {
	var numbers [3]int
	for i := range numbers {
		if numbers[i], err = p.ports.Port(); err != nil {
			return "", err
		}
	}
	p.ferry = FerryAddresses{
		Namespace:      ferryNamespace,
		WebhookHost:    "127.0.0.1",
		WebhookPort:    numbers[0],
		WebhookCertDir: p.ferryFile("certs"),
		HealthAddress:  fmt.Sprintf("127.0.0.1:%d", numbers[1]),
		MetricsAddress: fmt.Sprintf("127.0.0.1:%d", numbers[2]),
		KubeconfigDir:  p.ferryFile("kubeconfigs"),
		Frameworks:     p.options.Frameworks,
	}
	if err := os.MkdirAll(p.ferry.KubeconfigDir, 0o755); err != nil {
		return "", err
	}
	if p.ferryCA, err = pki.NewCA("ferry"); err != nil {
		return "", err
	}
	pair, err := p.ferryCA.Serving("ferry-webhook-service")
	if err != nil {
		return "", err
	}
	if err := pair.Write(p.ferry.WebhookCertDir, "tls"); err != nil {
		return "", err
	}
	data, err := fillFerryConfig(p.options.FerryConfig, p.ferry)
	if err != nil {
		return "", err
	}
	config = p.ferryFile("config.yaml")
	if err := os.WriteFile(config, data, 0o644); err != nil {
		return "", fmt.Errorf("write the config: %w", err)
	}
	return config, nil
}

func fillFerryConfig(text string, addresses FerryAddresses) ([]byte, error) {
	t, err := template.New("FerryConfig").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the config is not a template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, addresses); err != nil {
		return nil, fmt.Errorf("fill in the config: %w", err)
	}
	return out.Bytes(), nil
}

// ferryKubeconfig gives Ferry the rights of its own manifests, and no others.
func (p *Playground) ferryKubeconfig(ctx context.Context) (string, error) {
	dir := filepath.Join(p.builder.Root, "config", "rbac")
	role, err := manifest.Dir(dir)
	if err != nil {
		return "", err
	}
	if len(role) == 0 {
		return "", fmt.Errorf("%s has no manifests: Ferry would have no rights on the manager", dir)
	}
	d := dispatcher{namespace: ferryNamespace, account: ferryAccount}
	if err := p.manager.account(ctx, d, role); err != nil {
		return "", err
	}
	token, err := p.manager.token(ctx, d)
	if err != nil {
		return "", err
	}
	data, err := p.manager.kubeconfig(p.manager.Server(), &clientcmdapi.AuthInfo{Token: token})
	if err != nil {
		return "", err
	}
	path := p.ferryFile("kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("write Ferry's kubeconfig: %w", err)
	}
	return path, nil
}

func (p *Playground) ferryEndpoint() manifest.Endpoint {
	return manifest.Endpoint{Address: fmt.Sprintf("%s:%d", p.ferry.WebhookHost, p.ferry.WebhookPort), CA: p.ferryCA.PEM}
}

// installFerryWebhooks comes after Ferry is ready: until then they would refuse every job.
func (p *Playground) installFerryWebhooks(ctx context.Context) error {
	file := filepath.Join(p.builder.Root, "config", "webhook", "manifests.yaml")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	hooks, err := manifest.File(file)
	if err != nil {
		return err
	}
	if err := manifest.Webhooks(hooks, p.ferryEndpoint(), nil); err != nil {
		return err
	}
	return p.manager.apply(ctx, hooks...)
}

// GrantByConfig gives Ferry what it prints for its configuration: its rights in all clusters, and its webhooks.
// The manifests of config/, with which it starts, know the built-in kinds only.
func (p *Playground) GrantByConfig(ctx context.Context) error {
	for _, c := range p.Clusters() {
		command := "worker-role"
		if c.IsManager() {
			command = "manager-role"
		}
		printed, err := exec.CommandContext(ctx, p.binaries["ferry"], command, "--config", p.ferryFile("config.yaml")).Output()
		if err != nil {
			return fmt.Errorf("ferry %s: %w", command, err)
		}
		objects, err := manifest.Parse(printed)
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Secret" })
		if c.IsManager() {
			if err := manifest.Webhooks(objects, p.ferryEndpoint(), nil); err != nil {
				return err
			}
		}
		if err := c.apply(ctx, objects...); err != nil {
			return err
		}
	}
	return nil
}
