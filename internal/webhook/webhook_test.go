package webhook_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/webhook"
)

type server struct{ http.ServeMux }

func (s *server) Register(path string, hook http.Handler) { s.Handle(path, hook) }

func TestPath(t *testing.T) {
	g := NewWithT(t)
	g.Expect(webhook.Path(job().GVK)).To(Equal("/mutate-batch-v1-job"))
	paths := map[string]string{}
	for _, group := range []string{"jobset.x-k8s.io", "jobset-x-k8s-io", "jobset.x-k8s-io", "v1.io", "v1-v1.io"} {
		path := webhook.Path(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "JobSet"})
		g.Expect(paths).NotTo(HaveKey(path), "groups %s and %s", group, paths[path])
		paths[path] = group
	}
}

// TestRegister goes through HTTP, as the API server does. Whether the cache or
// only the API server has the queues makes no difference.
func TestRegister(t *testing.T) {
	filled, empty := newReader(t, interceptor.Funcs{}), fake.NewClientBuilder().WithScheme(newReader(t, interceptor.Funcs{}).Scheme()).Build()
	t.Run("cached", func(t *testing.T) { register(t, filled, empty) })
	t.Run("live", func(t *testing.T) { register(t, empty, filled) })
}

// TestKindsThatAreOffPass: the manifests name them, and their users must not notice.
func TestKindsThatAreOffPass(t *testing.T) {
	s := &server{}
	reader := newReader(t, interceptor.Funcs{})
	webhook.Register(s, kinds.NewTable([]string{"batch/job"}), reader, reader)
	for _, kind := range kinds.All() {
		if len(kind.ManagedBy) == 0 || kind.Framework == "batch/job" {
			continue
		}
		response := post(t, s, webhook.Path(kind.GVK))
		NewWithT(t).Expect(response.Allowed).To(BeTrue(), kind.Name())
		NewWithT(t).Expect(response.Patch).To(BeEmpty(), kind.Name())
	}
	NewWithT(t).Expect(post(t, s, "/mutate--v1-pod")).To(And(HaveField("Allowed", true), HaveField("Patch", BeEmpty())))
}

func register(t *testing.T, cache, live client.Reader) {
	s := &server{}
	webhook.Register(s, kinds.NewTable(kinds.Frameworks()), cache, live)
	for _, kind := range kinds.All() {
		g := NewWithT(t)
		if kind.GVK.Kind == "Pod" {
			continue // see podgate_test.go
		}
		response := post(t, s, webhook.Path(kind.GVK))
		if len(kind.ManagedBy) == 0 {
			g.Expect(response).To(BeNil(), kind.Name())
			continue
		}
		g.Expect(response.Allowed).To(BeTrue())
		g.Expect(response.PatchType).To(HaveValue(Equal(admissionv1.PatchTypeJSONPatch)))
		g.Expect(string(response.Patch)).To(ContainSubstring(ours), kind.Name())
	}
}

// post asks the webhook at path about a new job; nil when there is none.
func post(t *testing.T, s *server, path string) *admissionv1.AdmissionResponse {
	t.Helper()
	g := NewWithT(t)
	request := create(object("dispatched", "")).AdmissionRequest
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request,
	})
	g.Expect(err).NotTo(HaveOccurred())
	call := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, call)
	if answer.Code == http.StatusNotFound {
		return nil
	}
	var review admissionv1.AdmissionReview
	g.Expect(json.Unmarshal(answer.Body.Bytes(), &review)).To(Succeed())
	g.Expect(review.Response.UID).To(Equal(request.UID))
	return review.Response
}
