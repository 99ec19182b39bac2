// Package webhook keeps jobs that go to workers from running on the manager, from the moment they are created.
package webhook

import (
	"context"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ferry.dev/ferry/internal/kinds"
)

// Server is what Register needs of controller-runtime's webhook.Server.
type Server interface {
	Register(path string, hook http.Handler)
}

// Register serves one mutating webhook for each kind of the table that has a
// managedBy field, at Path of that kind, and one for pods. What is not in the table
// gets one that lets all pass, as the manifests name it too. The manager's cache must know LocalQueues,
// ClusterQueues and AdmissionChecks; what it does not have is looked up live. Every kind may
// be registered only once per server: the server panics on a second time.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=localqueues;clusterqueues;admissionchecks,verbs=get;list;watch
func Register(server Server, table *kinds.Table, cache, live client.Reader) {
	reader := patient{Reader: cache, live: live}
	for _, kind := range table.Rows() {
		if len(kind.ManagedBy) > 0 {
			server.Register(Path(kind.GVK), &admission.Webhook{Handler: &ManagedBy{Kind: kind, Kinds: table, Reader: reader}})
		}
	}
	for _, gvk := range table.Unnamed() {
		server.Register(Path(gvk), &admission.Webhook{Handler: &PodGate{Reader: reader}})
	}
	for _, gvk := range off(table) {
		server.Register(Path(gvk), &admission.Webhook{Handler: admission.HandlerFunc(pass)})
	}
}

// off lists what is not in the table, of what the manifests name: built-in kinds with a managedBy field, and pods.
func off(table *kinds.Table) []schema.GroupVersionKind {
	var gvks []schema.GroupVersionKind
	for _, kind := range kinds.All() {
		if len(kind.ManagedBy) > 0 && table.ByName(kind.Name()) == nil {
			gvks = append(gvks, kind.GVK)
		}
	}
	if len(table.Unnamed()) == 0 {
		gvks = append(gvks, corev1.SchemeGroupVersion.WithKind("Pod"))
	}
	return gvks
}

func pass(context.Context, admission.Request) admission.Response { return admission.Allowed("") }

// Path is where the webhook of a kind is served, as in "/mutate-ray.io-v1-rayjob".
// Each kind has its own: a group may have dashes and dots.
func Path(gvk schema.GroupVersionKind) string {
	return "/mutate-" + gvk.Group + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}
