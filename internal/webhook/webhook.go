// Package webhook keeps jobs that go to workers from running on the manager, from the moment they are created.
package webhook

import (
	"context"
	"net/http"
	"strings"

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
// managedBy field, at Path of that kind. Built-in kinds that are not in the table
// get one that lets all pass, as the manifests name them all. The manager's cache must know LocalQueues,
// ClusterQueues and AdmissionChecks; what it does not have is looked up live. Every kind may
// be registered only once per server: the server panics on a second time.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=localqueues;clusterqueues;admissionchecks,verbs=get;list;watch
func Register(server Server, table *kinds.Table, cache, live client.Reader) {
	reader := patient{Reader: cache, live: live}
	for _, kind := range table.Rows() {
		if len(kind.ManagedBy) > 0 {
			server.Register(Path(kind.GVK), &admission.Webhook{Handler: &ManagedBy{Kind: kind, Reader: reader}})
		}
	}
	for _, gvk := range table.Unnamed() {
		server.Register(Path(gvk), &admission.Webhook{Handler: &PodGate{Reader: reader}})
	}
	for _, kind := range kinds.All() {
		if len(kind.ManagedBy) > 0 && table.ByName(kind.Name()) == nil {
			server.Register(Path(kind.GVK), &admission.Webhook{Handler: admission.HandlerFunc(pass)})
		}
	}
}

func pass(context.Context, admission.Request) admission.Response { return admission.Allowed("") }

// Path is where the webhook of a kind is served, as in "/mutate-ray.io-v1-rayjob".
// Each kind has its own: a group may have dashes and dots.
func Path(gvk schema.GroupVersionKind) string {
	return "/mutate-" + gvk.Group + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}
