package manifest

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Endpoint is a webhook server outside the cluster.
type Endpoint struct {
	Address string // host:port
	CA      []byte // PEM
}

// client is the clientConfig for a path on the endpoint.
func (e Endpoint) client(path string) map[string]any {
	return map[string]any{
		"url":      "https://" + e.Address + path,
		"caBundle": base64.StdEncoding.EncodeToString(e.CA),
	}
}

// Webhooks rewrites Mutating- and ValidatingWebhookConfigurations, in place: every webhook that points to a Service
// points to the endpoint afterwards. Webhooks that keep refuses are dropped; nil keeps all. Other objects are left alone.
func Webhooks(objects []*unstructured.Unstructured, to Endpoint, keep func(webhook map[string]any) bool) error {
	for _, o := range objects {
		if !isWebhooks(o) {
			continue
		}
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		kept := []any{}
		for _, h := range hooks {
			hook, ok := h.(map[string]any)
			if !ok {
				return fmt.Errorf("%s %s: a webhook is no object", o.GetKind(), o.GetName())
			}
			if keep != nil && !keep(hook) {
				continue
			}
			if path, found, _ := unstructured.NestedString(hook, "clientConfig", "service", "path"); found {
				hook["clientConfig"] = to.client(path)
			}
			kept = append(kept, hook)
		}
		if err := unstructured.SetNestedSlice(o.Object, kept, "webhooks"); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func isWebhooks(o *unstructured.Unstructured) bool {
	return o.GetKind() == "MutatingWebhookConfiguration" || o.GetKind() == "ValidatingWebhookConfiguration"
}

// Conversion points a CRD's conversion webhook to the endpoint.
func Conversion(crd *unstructured.Unstructured, to Endpoint, path string) error {
	conversion := map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             to.client(path),
			"conversionReviewVersions": []any{"v1"},
		},
	}
	if err := unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"); err != nil {
		return fmt.Errorf("CRD %s: %w", crd.GetName(), err)
	}
	return nil
}
