package playground

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/operator"
	"ferry.dev/ferry/playground/process"
	"ferry.dev/ferry/playground/ray"
)

// runOperator starts the operator's process, unless it runs, and returns once it is ready. Its webhooks are there before:
// the API server takes a moment to see them, and the first job shall not pass them by.
func (c *Cluster) runOperator(ctx context.Context, row operator.Row, binary, dir string) error {
	started := c.Component(row.Name)
	if started != nil && started.Running() {
		return c.awaitOperator(ctx, row)
	}
	var args, env []string
	if started == nil {
		var err error
		if args, env, err = c.prepareOperator(ctx, row); err != nil {
			return err
		}
	}
	hooks, err := c.operatorWebhooks(row, dir)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, hooks...); err != nil {
		return err
	}
	if started == nil {
		err = c.firstRun(row, binary, args, env)
	} else {
		err = started.Start()
	}
	if err != nil {
		return err
	}
	return c.awaitOperator(ctx, row)
}

// prepareOperator makes what outlives the process: ports and certificates, the same at each start, and the config.
func (c *Cluster) prepareOperator(ctx context.Context, row operator.Row) (args, env []string, err error) {
	at, known := c.operators[row.Name]
	if !known {
		if at, err = c.operatorPlace(row); err != nil {
			return nil, nil, err
		}
	}
	args, env, config, err := row.Fill(at)
	if err != nil {
		return nil, nil, err
	}
	c.operators[row.Name] = at
	return args, env, c.writeOperatorConfig(ctx, row, at, config)
}

func (c *Cluster) firstRun(row operator.Row, binary string, args, env []string) error {
	_, err := c.p.run(process.Spec{
		Name: c.Name + "/" + row.Name,
		Path: binary,
		Args: args,
		// Operators that have no setting for it look for their certificates in a folder of the temporary one.
		Env:   append(env, "KUBECONFIG="+c.AdminKubeconfig(), "TMPDIR="+c.file("run", row.Name)),
		Dir:   c.file("run", row.Name),
		Log:   c.file("logs", row.Name+".log"),
		Grace: grace,
	})
	return err
}

func (c *Cluster) operatorPlace(row operator.Row) (operator.Place, error) {
	at := operator.Place{
		Config: c.file("run", row.Name, "config.yaml"),
		Certs:  c.file("run", row.Name, "k8s-webhook-server", "serving-certs"),
	}
	for _, port := range []*int{&at.HealthPort, &at.WebhookPort} {
		var err error
		if *port, err = c.p.ports.Port(); err != nil {
			return at, err
		}
	}
	pair, err := c.ca.Serving(row.Name + "-webhook")
	if err != nil {
		return at, err
	}
	if err := pair.Write(at.Certs, "tls"); err != nil {
		return at, err
	}
	if row.Rays {
		if at.RayProxy, err = c.startRay(); err != nil {
			return at, err
		}
	}
	return at, nil
}

func (c *Cluster) writeOperatorConfig(ctx context.Context, row operator.Row, at operator.Place, config string) error {
	if row.Namespace != "" {
		if err := c.ensureNamespace(ctx, row.Namespace); err != nil {
			return err
		}
	}
	if row.ConfigMap != "" {
		held := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.ConfigMap},
			Data:       map[string]string{filepath.Base(at.Config): config},
		}
		return c.create(ctx, held)
	}
	if err := os.WriteFile(at.Config, []byte(config), 0o644); err != nil {
		return fmt.Errorf("write the config of %s: %w", row.Name, err)
	}
	return nil
}

func (c *Cluster) awaitOperator(ctx context.Context, row operator.Row) error {
	url := fmt.Sprintf("http://127.0.0.1:%d%s", c.operators[row.Name].HealthPort, row.Health)
	process := c.Component(row.Name)
	return await(ctx, process.Name(), answers(url), process, c.apiserver)
}

// operatorWebhooks are the operator's webhook configurations, which point to its process.
func (c *Cluster) operatorWebhooks(row operator.Row, dir string) ([]*unstructured.Unstructured, error) {
	if row.Webhooks == "" {
		return nil, nil
	}
	hooks, err := manifest.File(filepath.Join(dir, filepath.FromSlash(row.Webhooks)))
	if err != nil {
		return nil, err
	}
	to := manifest.Endpoint{Address: fmt.Sprintf("127.0.0.1:%d", c.operators[row.Name].WebhookPort), CA: c.ca.PEM}
	err = manifest.Webhooks(hooks, to, func(webhook map[string]any) bool {
		row.Narrow(webhook)
		return true
	})
	for _, h := range hooks {
		h.SetName(row.Name + "-" + h.GetName())
	}
	return hooks, err
}

func (c *Cluster) removeWebhooks(ctx context.Context, row operator.Row, dir string) error {
	hooks, err := c.operatorWebhooks(row, dir)
	if err != nil {
		return err
	}
	return c.remove(ctx, hooks...)
}

// startRay plays the Ray heads of this cluster, whose pods are fakes, and returns the URL of the HTTP proxy to them.
func (c *Cluster) startRay() (string, error) {
	port, err := c.p.ports.Port()
	if err != nil {
		return "", err
	}
	heads, err := ray.Serve(fmt.Sprintf("127.0.0.1:%d", port), c.p.options.JobRunsFor)
	if err != nil {
		return "", err
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.rays = append(c.p.rays, heads)
	return heads.URL(), nil
}

// EndRayJobs ends all Ray jobs that run on the workers, as if their time was over.
func (p *Playground) EndRayJobs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, heads := range p.rays {
		heads.EndJobs()
	}
}
