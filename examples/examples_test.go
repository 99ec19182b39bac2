// Package examples_test checks that the examples are valid and fit together.
package examples_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/webhook"
	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/operator"
)

func newScheme(g Gomega) *runtime.Scheme {
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(kueue.AddToScheme(scheme)).To(Succeed())
	return scheme
}

// load decodes a file's documents into their types; a field that a type does not have is an error.
func load(g Gomega, file string) []client.Object {
	data, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	decoder := serializer.NewCodecFactory(newScheme(g), serializer.EnableStrict).UniversalDeserializer()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var objects []client.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			g.Expect(objects).NotTo(BeEmpty(), file)
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred(), file)
		object, _, err := decoder.Decode(document, nil, nil)
		g.Expect(err).NotTo(HaveOccurred(), "%s:\n%s", file, document)
		objects = append(objects, object.(client.Object))
	}
}

func only[T client.Object](g Gomega, objects []client.Object) T {
	var found []T
	for _, object := range objects {
		if t, ok := object.(T); ok {
			found = append(found, t)
		}
	}
	g.Expect(found).To(HaveLen(1), "%T", *new(T))
	return found[0]
}

func TestEveryFileIsValidAndDescribed(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	readme, err := os.ReadFile("README.md")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		load(g, file)
		g.Expect(string(readme)).To(ContainSubstring("| `"+file+"` |"), "README.md must say what it is")
	}
}

// TestEveryKindHasAnExample looks for all that the playground can run; batch/job is in the folder above.
func TestEveryKindHasAnExample(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("kinds/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	readme, err := os.ReadFile("README.md")
	g.Expect(err).NotTo(HaveOccurred())
	for _, framework := range operator.Frameworks([]string{operator.All}, nil) {
		if framework != "batch/job" {
			g.Expect(files).To(ContainElement("kinds/"+path.Base(framework)+".yaml"), framework)
		}
	}
	for _, file := range files {
		objects, err := manifest.File(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(objects).NotTo(BeEmpty(), file)
		for _, o := range objects {
			g.Expect(o.GetNamespace()).To(Equal("team"), file)
			labels := o.GetLabels()
			if o.GetKind() == "CronJob" { // Kueue knows its Jobs only
				labels, _, err = unstructured.NestedStringMap(o.Object, "spec", "jobTemplate", "metadata", "labels")
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(labels).To(HaveKeyWithValue("kueue.x-k8s.io/queue-name", "team"), file)
		}
		if objects[0].GroupVersionKind().Group == "" || objects[0].GroupVersionKind().Group == "apps" {
			load(g, file)
		}
		g.Expect(string(readme)).To(ContainSubstring("| `"+filepath.Base(file)+"` |"), "README.md must say what it is")
	}
}

func TestManagerAndWorkersHaveTheSameQueue(t *testing.T) {
	g := NewWithT(t)
	manager, worker := load(g, "queues-manager.yaml"), load(g, "queues-worker.yaml")
	for _, objects := range [][]client.Object{manager, worker} {
		queue, flavor := only[*kueue.ClusterQueue](g, objects), only[*kueue.ResourceFlavor](g, objects)
		g.Expect(only[*kueue.LocalQueue](g, objects).Spec.ClusterQueue).To(BeEquivalentTo(queue.Name))
		g.Expect(queue.Spec.ResourceGroups[0].Flavors[0].Name).To(BeEquivalentTo(flavor.Name))
	}
	g.Expect(client.ObjectKeyFromObject(only[*kueue.LocalQueue](g, manager))).To(Equal(client.ObjectKeyFromObject(only[*kueue.LocalQueue](g, worker))))
	g.Expect(only[*kueue.ClusterQueue](g, worker).Spec.AdmissionChecksStrategy).To(BeNil(), "a worker runs its jobs itself")

	check, config := only[*kueue.AdmissionCheck](g, manager), only[*kueue.MultiKueueConfig](g, manager)
	g.Expect(check.Spec.Parameters).To(HaveValue(Equal(kueue.AdmissionCheckParametersReference{
		APIGroup: kueue.SchemeGroupVersion.Group, Kind: "MultiKueueConfig", Name: config.Name,
	})))
	g.Expect(config.Spec.Clusters).To(Equal([]string{"w1", "w2"}))
}

// TestEveryJobGoesToAWorker passes the jobs through Ferry's webhook, with the example's queues.
func TestEveryJobGoesToAWorker(t *testing.T) {
	g := NewWithT(t)
	queues := fake.NewClientBuilder().WithScheme(newScheme(g)).WithObjects(load(g, "queues-manager.yaml")...).Build()
	files, err := filepath.Glob("*job.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(3))
	for _, file := range files {
		job := only[*batchv1.Job](g, load(g, file))
		raw, err := json.Marshal(job)
		g.Expect(err).NotTo(HaveOccurred())
		kind := kinds.NewTable(kinds.Frameworks()).ByName(job.GroupVersionKind().GroupKind().String())
		response := (&webhook.ManagedBy{Kind: kind, Reader: queues}).Handle(t.Context(), admission.Request{
			AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Namespace: job.Namespace, Object: runtime.RawExtension{Raw: raw},
			},
		})
		g.Expect(response.Allowed).To(BeTrue(), file)
		g.Expect(response.Patches).To(HaveLen(1), file)
	}
	failing := only[*batchv1.Job](g, load(g, "failing-job.yaml"))
	g.Expect(failing.Spec.Template.Annotations).To(HaveKeyWithValue("playground.ferry.dev/fail", "true"))
}
