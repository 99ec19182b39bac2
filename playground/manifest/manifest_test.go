package manifest

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const hooksYAML = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: m}
webhooks:
- name: one.example.com
  clientConfig: {service: {name: s, namespace: n, path: /mutate-one}}
- name: two.example.com
  clientConfig: {service: {name: s, namespace: n, path: /mutate-two}}
- name: outside.example.com
  clientConfig: {url: "https://elsewhere/x"}
---
apiVersion: v1
kind: Service
metadata: {name: s}
---
# an empty document
`

func TestWebhooksPointToTheEndpoint(t *testing.T) {
	g := NewWithT(t)
	objects, err := Parse([]byte(hooksYAML))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(2))
	err = Webhooks(objects, Endpoint{Address: "127.0.0.1:9443", CA: []byte("ca")}, func(h map[string]any) bool {
		return h["name"] != "two.example.com"
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects[0].Object["webhooks"]).To(Equal([]any{
		map[string]any{"name": "one.example.com", "clientConfig": map[string]any{
			"url": "https://127.0.0.1:9443/mutate-one", "caBundle": "Y2E=",
		}},
		map[string]any{"name": "outside.example.com", "clientConfig": map[string]any{"url": "https://elsewhere/x"}},
	}))
	g.Expect(objects[1].GetKind()).To(Equal("Service"))
}

func TestConversionPointsToTheEndpoint(t *testing.T) {
	g := NewWithT(t)
	crd := Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "x")
	g.Expect(Conversion(crd, Endpoint{Address: "127.0.0.1:1", CA: []byte("ca")}, "/convert")).To(Succeed())
	url, _, err := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "url")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(url).To(Equal("https://127.0.0.1:1/convert"))
}

func TestDirLeavesOutKustomizations(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml":             "apiVersion: v1\nkind: Service\nmetadata: {name: second}\n",
		"a.yaml":             "apiVersion: v1\nkind: Service\nmetadata: {name: first}\n",
		"kustomization.yaml": "kind: Kustomization\n",
		"README.md":          "# no YAML",
	} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	objects, err := Dir(dir)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	g.Expect(names).To(Equal([]string{"first", "second"}))

	g.Expect(Dir(filepath.Join(dir, "none"))).To(BeEmpty())
	g.Expect(os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("a: [b"), 0o600)).To(Succeed())
	_, err = Dir(dir)
	g.Expect(err).To(MatchError(ContainSubstring("c.yaml")))
}

func TestInNamespace(t *testing.T) {
	g := NewWithT(t)
	objects, err := Parse([]byte(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b},
subjects: [{kind: ServiceAccount, name: a}, {kind: User, name: u}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(InNamespace("ferry-system", objects)).To(Succeed())
	g.Expect(objects[0].GetNamespace()).To(BeEmpty())
	g.Expect(objects[0].Object["subjects"]).To(Equal([]any{
		map[string]any{"kind": "ServiceAccount", "name": "a", "namespace": "ferry-system"},
		map[string]any{"kind": "User", "name": "u"},
	}))
	g.Expect(objects[1].GetNamespace()).To(Equal("ferry-system"))
}

func TestListOfACRDsKind(t *testing.T) {
	g := NewWithT(t)
	crds, err := Parse([]byte("kind: CustomResourceDefinition\nspec: {group: ray.io, names: {kind: RayJob}, versions: [{name: v1}, {name: v1alpha1}]}"))
	g.Expect(err).NotTo(HaveOccurred())
	list, err := ListOf(crds[0])
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.GroupVersionKind().String()).To(Equal("ray.io/v1, Kind=RayJobList"))
	_, err = ListOf(Object("v1", "Pod", "", "x"))
	g.Expect(err).To(MatchError(ContainSubstring("no CustomResourceDefinition")))
}
