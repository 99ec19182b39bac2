package playground

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/playground/build"
	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/pki"
)

const kueueNamespace = "kueue-system"

// startKueue installs Kueue as its own manifests do, with its process outside the cluster.
func (c *Cluster) startKueue(ctx context.Context) error {
	crds, err := c.kueueCRDs()
	if err != nil {
		return err
	}
	paths, err := c.p.firstCRDs(ctx)
	if err != nil {
		return err
	}
	more, err := readManifests(paths)
	if err != nil {
		return err
	}
	if err := c.installCRDs(ctx, append(crds, more...)); err != nil {
		return err
	}
	if err := c.ensureNamespace(ctx, kueueNamespace); err != nil {
		return err
	}
	config, err := c.kueueConfig()
	if err != nil {
		return err
	}
	process, err := c.run("kueue", "--config="+config, "--kubeconfig="+c.file("pki", "kueue.kubeconfig"))
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", c.ports.kueueHealth)
	if err := await(ctx, process.Name(), answers(url), process, c.apiserver); err != nil {
		return err
	}
	if err := c.installKueueWebhooks(ctx); err != nil {
		return err
	}
	return await(ctx, process.Name()+"'s webhooks", c.kueueWebhooksAnswer, process, c.apiserver)
}

func (c *Cluster) kueueEndpoint() manifest.Endpoint {
	return manifest.Endpoint{Address: fmt.Sprintf("127.0.0.1:%d", c.ports.kueueWebhook), CA: c.ca.PEM}
}

// kueueCRDs are Kueue's CRDs; those that Kueue's kustomization gives a conversion webhook have one here too.
func (c *Cluster) kueueCRDs() ([]*unstructured.Unstructured, error) {
	folder := filepath.Join(c.p.kueueDir, "config", "components", "crd")
	crds, err := manifest.Dir(filepath.Join(folder, "bases"))
	if err != nil {
		return nil, err
	}
	converted, err := convertedCRDs(folder)
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		if !slices.Contains(converted, crd.GetName()) {
			continue
		}
		if err := manifest.Conversion(crd, c.kueueEndpoint(), "/convert"); err != nil {
			return nil, err
		}
	}
	return crds, nil
}

// convertedCRDs names the CRDs for which Kueue's kustomization has a conversion webhook: not all for which there is a
// patch, as not all have versions that differ.
func convertedCRDs(folder string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list Kueue's conversion webhooks: %w", err)
	}
	var kustomization struct {
		Patches []struct{ Path string }
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		return nil, fmt.Errorf("list Kueue's conversion webhooks: %w", err)
	}
	var names []string
	for _, patch := range kustomization.Patches {
		if plural, found := strings.CutPrefix(filepath.Base(patch.Path), "webhook_in_"); found {
			names = append(names, strings.TrimSuffix(plural, ".yaml")+"."+kueue.SchemeGroupVersion.Group)
		}
	}
	return names, nil
}

// readManifests reads the objects of files and folders.
func readManifests(paths []string) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		read := manifest.File
		if info.IsDir() {
			read = manifest.Dir
		}
		more, err := read(path)
		if err != nil {
			return nil, err
		}
		crds = append(crds, more...)
	}
	return crds, nil
}

// installCRDs returns once the API server serves all of them.
func (c *Cluster) installCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	if err := c.apply(ctx, crds...); err != nil {
		return err
	}
	for _, crd := range crds {
		err := await(ctx, c.Name+"'s CRD "+crd.GetName(), func(ctx context.Context) error {
			live := manifest.Object(crd.GetAPIVersion(), crd.GetKind(), "", crd.GetName())
			if err := c.client.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return err
			}
			if !manifest.Established(live) {
				return fmt.Errorf("CRD %s is not established", crd.GetName())
			}
			return nil
		}, c.apiserver)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) ensureNamespace(ctx context.Context, name string) error {
	return c.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// kueueConfig writes the Configuration: the stock one, with addresses on loopback and without what needs a cluster
// around it (leader election, certificate rotation, the visibility API).
func (c *Cluster) kueueConfig() (string, error) {
	gates := map[string]any{"VisibilityOnDemand": false}
	if c.IsManager() && !c.p.options.StockMultiKueue {
		gates["MultiKueue"] = false
	}
	if !c.IsManager() {
		for name, on := range c.p.options.WorkerGates {
			gates[name] = on
		}
	}
	config := map[string]any{
		"apiVersion": "config.kueue.x-k8s.io/v1beta2",
		"kind":       "Configuration",
		"namespace":  kueueNamespace,
		"health":     map[string]any{"healthProbeBindAddress": fmt.Sprintf("127.0.0.1:%d", c.ports.kueueHealth)},
		"metrics":    map[string]any{"bindAddress": "0"},
		"webhook": map[string]any{
			"host": "127.0.0.1", "port": c.ports.kueueWebhook, "certDir": c.file("pki", "kueue"),
		},
		"leaderElection": map[string]any{"leaderElect": false},
		"controller": map[string]any{"groupKindConcurrency": map[string]any{
			"Job.batch": 5, "Pod": 5, "Workload.kueue.x-k8s.io": 10, "LocalQueue.kueue.x-k8s.io": 5,
			"Cohort.kueue.x-k8s.io": 1, "ClusterQueue.kueue.x-k8s.io": 5, "ResourceFlavor.kueue.x-k8s.io": 1,
		}},
		"clientConnection":       map[string]any{"qps": 300, "burst": 500},
		"internalCertManagement": map[string]any{"enable": false},
		"integrations":           map[string]any{"frameworks": c.p.options.Frameworks},
		"featureGates":           gates,
	}
	if c.IsManager() && c.p.options.StockMultiKueue {
		config["multiKueue"] = c.p.options.multiKueue()
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("write Kueue's config: %w", err)
	}
	path := c.file("kueue.yaml")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return "", fmt.Errorf("write Kueue's config: %w", err)
	}
	return path, c.metricsCertificate()
}

// multiKueue is the section of Kueue's configuration; what is left out has Kueue's defaults.
func (o Options) multiKueue() map[string]any {
	section := map[string]any{}
	if o.MultiKueueOrigin != "" {
		section["origin"] = o.MultiKueueOrigin
	}
	var frameworks []any
	for _, name := range o.MultiKueueFrameworks {
		frameworks = append(frameworks, map[string]any{"name": name})
	}
	if len(frameworks) > 0 {
		section["externalFrameworks"] = frameworks
	}
	return section
}

// metricsCertificate is one that Kueue wants to see and does not use.
func (c *Cluster) metricsCertificate() error {
	ca, err := pki.NewCA("unused")
	if err != nil {
		return err
	}
	pair, err := ca.Serving("metrics")
	if err != nil {
		return err
	}
	return pair.Write(c.file("run", "kueue", build.MetricsCerts), "tls")
}

func (c *Cluster) installKueueWebhooks(ctx context.Context) error {
	hooks, err := manifest.File(filepath.Join(c.p.kueueDir, "config", "components", "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}
	if err := manifest.Webhooks(hooks, c.kueueEndpoint(), spareSystemNamespaces); err != nil {
		return err
	}
	for _, h := range hooks {
		h.SetName("kueue-" + h.GetName())
	}
	return c.apply(ctx, hooks...)
}

// spareSystemNamespaces keeps all webhooks and, as Kueue's kustomization does, keeps those for jobs and pods out of
// the system's namespaces.
func spareSystemNamespaces(hook map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(hook, "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		if slices.Contains(groups, kueue.SchemeGroupVersion.Group) {
			return true
		}
	}
	hook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
		"key": corev1.LabelMetadataName, "operator": "NotIn", "values": []any{"kube-system", kueueNamespace},
	}}}
	return true
}

// kueueWebhooksAnswer checks that the API server asks Kueue: its mutating webhook adds a finalizer.
func (c *Cluster) kueueWebhooksAnswer(ctx context.Context) error {
	probe := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{GenerateName: "playground-probe-"}}
	if err := c.client.Create(ctx, probe, client.DryRunAll); err != nil {
		return err
	}
	if !slices.Contains(probe.Finalizers, kueue.ResourceInUseFinalizerName) {
		return fmt.Errorf("the API server of %s does not call Kueue's webhooks yet", c.Name)
	}
	return nil
}
