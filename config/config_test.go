// Package config_test checks the kustomize base: that it is valid, complete, consistent and asks for no more than it must.
package config_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/kinds"
)

const kustomization = "kustomization.yaml"

// Kinds that have no Go type here.
var foreign = []string{"Kustomization", "Certificate", "Issuer"}

// object is one YAML document of the base, decoded strictly.
type object struct {
	raw *unstructured.Unstructured
	runtime.Object
}

func TestEveryKustomizationListsItsFolder(t *testing.T) {
	for _, file := range files(t) {
		g, folder := NewWithT(t), filepath.Dir(file)
		data, err := os.ReadFile(filepath.Join(folder, kustomization))
		g.Expect(err).NotTo(HaveOccurred(), "%s needs a %s beside it", file, kustomization)
		var list struct {
			APIVersion string   `json:"apiVersion"`
			Kind       string   `json:"kind"`
			Resources  []string `json:"resources"`
			Images     []any    `json:"images"`
		}
		g.Expect(yaml.UnmarshalStrict(data, &list)).To(Succeed())
		for _, resource := range list.Resources {
			g.Expect(filepath.Join(folder, resource)).To(BeAnExistingFile(), "listed in %s", folder)
		}
		if filepath.Base(file) != kustomization {
			g.Expect(list.Resources).To(ContainElement(filepath.Base(file)), "in %s", folder)
		}
	}
}

func TestDefaultInstallsTheManagersSideOnly(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("default/" + kustomization)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(And(ContainSubstring("../manager"), ContainSubstring("../rbac"), ContainSubstring("../webhook")))
	g.Expect(string(data)).NotTo(Or(ContainSubstring("../worker"), ContainSubstring("../certmanager")))
}

// With plain `kubectl apply -f`, a namespace must come before what is in it. ../rbac and ../webhook go after ../manager.
func TestNamespacesComeFirst(t *testing.T) {
	for _, file := range []string{"manager/manager.yaml", "worker/worker.yaml"} {
		NewWithT(t).Expect(in(t, file)[0].raw.GetKind()).To(Equal("Namespace"), file)
	}
}

func TestEverythingIsInFerrysNamespace(t *testing.T) {
	clusterWide := []string{"Namespace", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "Kustomization"}
	for _, o := range all(t) {
		g := NewWithT(t)
		if slices.Contains(clusterWide, o.raw.GetKind()) {
			g.Expect(o.raw.GetNamespace()).To(BeEmpty(), o.raw.GetName())
		} else {
			g.Expect(o.raw.GetNamespace()).To(Equal(config.DefaultNamespace), o.raw.GetName())
		}
	}
}

func TestTheConfigMapHoldsAValidConfiguration(t *testing.T) {
	g := NewWithT(t)
	pod := only[*appsv1.Deployment](t).Spec.Template.Spec
	file := filepath.Join(t.TempDir(), "config.yaml")
	g.Expect(os.WriteFile(file, []byte(only[*corev1.ConfigMap](t).Data["config.yaml"]), 0o600)).To(Succeed())

	container := pod.Containers[0]
	g.Expect(container.Args).To(ContainElement("--config=" + mountPath(t, pod, "config") + "/config.yaml"))
	flags, set := &config.Flags{}, pflag.NewFlagSet("ferry", pflag.ContinueOnError)
	flags.AddTo(set)
	g.Expect(set.Parse(append(slices.Clone(container.Args), "--config="+file))).To(Succeed())
	c, notes, err := flags.Configuration(kinds.Frameworks())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notes).To(BeEmpty())

	g.Expect(c.Namespace).To(Equal(config.DefaultNamespace))
	g.Expect(c.Integrations.Frameworks).To(ConsistOf(kinds.Frameworks()), "all kinds are on, as the docs say and the roles allow")
	g.Expect(c.Webhook.CertDir).To(Equal(mountPath(t, pod, "webhook-certs")))
	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	g.Expect(ports).To(HaveKeyWithValue("webhook", BeEquivalentTo(*c.Webhook.Port)))
	g.Expect(c.Health.HealthProbeBindAddress).To(Equal(":8081"))
	g.Expect(ports).To(HaveKeyWithValue("health", BeEquivalentTo(8081)))
	g.Expect(c.Metrics.BindAddress).To(Equal(":8443"))
	g.Expect(ports).To(HaveKeyWithValue("metrics", BeEquivalentTo(8443)))
}

func TestTheDeploymentIsRestricted(t *testing.T) {
	g := NewWithT(t)
	pod := only[*appsv1.Deployment](t).Spec.Template.Spec
	g.Expect(pod.ServiceAccountName).To(Equal("ferry"))
	g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
	g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
	for _, c := range pod.Containers {
		g.Expect(c.SecurityContext.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
		g.Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
		g.Expect(c.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		g.Expect(c.Resources.Requests).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)))
		g.Expect(c.LivenessProbe.HTTPGet.Path).To(Equal("/healthz"))
		g.Expect(c.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
	}
}

func TestTheWebhookReachesFerry(t *testing.T) {
	g := NewWithT(t)
	var hooks []admissionv1.MutatingWebhook
	var names []string
	for _, c := range every[*admissionv1.MutatingWebhookConfiguration](t) {
		names, hooks = append(names, c.Name), append(hooks, c.Webhooks...)
	}
	// It sorts after whatever Kueue's is called.
	g.Expect(names).To(Equal([]string{"zz-ferry-mutating-webhook-configuration"}))
	service := only[*corev1.Service](t)
	deployment := only[*appsv1.Deployment](t)
	for key, value := range service.Spec.Selector {
		g.Expect(deployment.Spec.Template.Labels).To(HaveKeyWithValue(key, value))
	}
	g.Expect(service.Spec.Ports).To(ConsistOf(And(HaveField("Port", BeEquivalentTo(443)), HaveField("TargetPort.StrVal", "webhook"))))
	seen := map[string]bool{}
	for _, hook := range hooks {
		seen[hook.Name] = true
		g.Expect(hook.ClientConfig.Service.Name).To(Equal(service.Name))
		g.Expect(hook.ClientConfig.Service.Namespace).To(Equal(service.Namespace))
		g.Expect(hook.ReinvocationPolicy).To(HaveValue(Equal(admissionv1.IfNeededReinvocationPolicy)))
		g.Expect(hook.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
		g.Expect(hook.SideEffects).To(HaveValue(Equal(admissionv1.SideEffectClassNone)))
		g.Expect(hook.NamespaceSelector.MatchExpressions).To(ConsistOf(
			HaveField("Values", ConsistOf("kube-system", "kueue-system", config.DefaultNamespace))))
		g.Expect(hook.MatchConditions).NotTo(BeEmpty(), "%s concerns objects that are not Kueue's", hook.Name)
	}
	g.Expect(seen).To(HaveLen(len(hooks)), "names must differ")
}

// TestOneFerryIsAlwaysThere: a drain of two nodes at once would stop the creation of jobs.
func TestOneFerryIsAlwaysThere(t *testing.T) {
	g := NewWithT(t)
	deployment, budget := only[*appsv1.Deployment](t), only[*policyv1.PodDisruptionBudget](t)
	g.Expect(budget.Spec.Selector).To(Equal(deployment.Spec.Selector))
	g.Expect(budget.Spec.MaxUnavailable.IntValue()).To(BeNumerically("<", *deployment.Spec.Replicas))
	g.Expect(budget.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)))
}

// TestTheCertificateComesFromACA: with a leaf that signs itself, each renewal would have to reach the API server's
// caBundle before Ferry's pods, which nobody sees to.
func TestTheCertificateComesFromACA(t *testing.T) {
	g := NewWithT(t)
	var ca, leaf, issuer map[string]any
	for _, o := range in(t, "certmanager/certificate.yaml") {
		spec := o.raw.Object["spec"].(map[string]any)
		switch {
		case o.raw.GetName() == "ferry-ca" && o.raw.GetKind() == "Certificate":
			ca = spec
		case o.raw.GetName() == "ferry-ca":
			issuer = spec
		case o.raw.GetKind() == "Certificate":
			leaf = spec
		}
	}
	g.Expect(ca).To(HaveKeyWithValue("isCA", true))
	g.Expect(issuer["ca"]).To(HaveKeyWithValue("secretName", ca["secretName"]))
	g.Expect(leaf["issuerRef"]).To(HaveKeyWithValue("name", "ferry-ca"))
	g.Expect(leaf).NotTo(HaveKey("isCA"))
	g.Expect(ca["secretName"]).NotTo(Equal(leaf["secretName"]), "Ferry's pods must not hold the CA's key")
}

func TestTheImageIsNamedOnce(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("manager/" + kustomization)
	g.Expect(err).NotTo(HaveOccurred())
	var list struct {
		Images []struct{ Name, NewName, NewTag string }
	}
	g.Expect(yaml.Unmarshal(data, &list)).To(Succeed())
	g.Expect(list.Images).To(HaveLen(1))
	name, _, _ := strings.Cut(only[*appsv1.Deployment](t).Spec.Template.Spec.Containers[0].Image, ":")
	g.Expect(list.Images[0].Name).To(Equal(name))
}

func all(t *testing.T) []object {
	t.Helper()
	var found []object
	for _, file := range files(t) {
		found = append(found, in(t, file)...)
	}
	return found
}

func only[T runtime.Object](t *testing.T) T {
	t.Helper()
	found := every[T](t)
	NewWithT(t).Expect(found).To(HaveLen(1))
	return found[0]
}

func every[T runtime.Object](t *testing.T) []T {
	t.Helper()
	var found []T
	for _, o := range all(t) {
		if typed, ok := o.Object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

func files(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".yaml") {
			found = append(found, path)
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(found).NotTo(BeEmpty())
	return found
}

func in(t *testing.T, file string) []object {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	var found []object
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		g.Expect(err).NotTo(HaveOccurred(), file)
		found = append(found, parse(t, file, document))
	}
}

func parse(t *testing.T, file string, document []byte) object {
	t.Helper()
	g := NewWithT(t)
	o := object{raw: &unstructured.Unstructured{}}
	g.Expect(yaml.UnmarshalStrict(document, &o.raw.Object)).To(Succeed(), file)
	if slices.Contains(foreign, o.raw.GetKind()) {
		return o
	}
	decoded, _, err := serializer.NewCodecFactory(scheme(t), serializer.EnableStrict).UniversalDeserializer().Decode(document, nil, nil)
	g.Expect(err).NotTo(HaveOccurred(), file)
	o.Object = decoded
	return o
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, admissionv1.AddToScheme} {
		NewWithT(t).Expect(add(s)).To(Succeed())
	}
	return s
}

func mountPath(t *testing.T, pod corev1.PodSpec, volume string) string {
	t.Helper()
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.Name == volume {
			return m.MountPath
		}
	}
	t.Fatalf("volume %s is not mounted", volume)
	return ""
}
