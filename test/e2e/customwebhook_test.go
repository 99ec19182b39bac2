package e2e_test

import (
	"strings"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/webhook"
	"ferry.dev/ferry/test/customjobs"
)

// addWebhooks lets the manager call Ferry when jobs of these kinds are created, in the way it is called for the built-in kinds.
func (s *site) addWebhooks(kinds ...*customjobs.Kind) {
	s.t.Helper()
	builtIn := &admissionregistrationv1.MutatingWebhookConfiguration{}
	s.Expect(manager().Get(s.ctx, client.ObjectKey{Name: "ferry-mutating-webhook-configuration"}, builtIn)).To(Succeed())
	custom := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "ferry-custom-kinds"}}
	for _, kind := range kinds {
		hook := builtIn.Webhooks[0].DeepCopy()
		hook.Name = "m" + strings.ToLower(kind.GVK.Kind) + ".ferry.dev"
		at := *hook.ClientConfig.URL
		at = at[:strings.LastIndex(at, "/")] + webhook.Path(kind.GVK)
		hook.ClientConfig.URL = &at
		hook.Rules[0].APIGroups, hook.Rules[0].APIVersions = []string{kind.GVK.Group}, []string{kind.GVK.Version}
		hook.Rules[0].Resources = []string{kind.Resource}
		custom.Webhooks = append(custom.Webhooks, *hook)
	}
	s.Expect(manager().Create(s.ctx, custom)).To(Succeed())
}
