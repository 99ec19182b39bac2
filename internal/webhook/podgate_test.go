package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ferry.dev/ferry/internal/webhook"
)

// gated is a pod that Kueue's webhook has been at, with these metadata fields.
func gated(metadata string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{` + metadata + `},"spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/admission"}]}}`
}

func TestPodGate(t *testing.T) {
	const done = `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"ferry.dev/dispatched":"true","kueue.x-k8s.io/queue-name":"dispatched"}},"spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/admission"},{"name":"ferry.dev/dispatched"}]}}`
	set := func(name string) string {
		return `"annotations":{"kueue.x-k8s.io/pod-suspending-parent":"statefulset"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"` + name + `","uid":"u","controller":true}]`
	}
	for name, test := range map[string]struct {
		in    string
		gated bool
	}{
		"our queue":                              {gated(`"labels":{"kueue.x-k8s.io/queue-name":"dispatched"}`), true},
		"another queue":                          {gated(`"labels":{"kueue.x-k8s.io/queue-name":"plain"}`), false},
		"no queue":                               {gated(``), false},
		"already gated":                          {done, false},
		"not Kueue's":                            {`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"kueue.x-k8s.io/queue-name":"dispatched"}},"spec":{}}`, false},
		"another gate":                           {`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"kueue.x-k8s.io/queue-name":"dispatched"}},"spec":{"schedulingGates":[{"name":"a"}]}}`, false},
		"gates of another type":                  {`{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"schedulingGates":"a"}}`, false},
		"a StatefulSet's, our queue":             {gated(set("dispatched")), true},
		"a StatefulSet's, another queue":         {gated(set("plain")), false},
		"of a StatefulSet that is gone":          {gated(set("absent")), false},
		"owned by a StatefulSet that Kueue lets": {gated(`"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"dispatched","uid":"u","controller":true}]`), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			handler := &webhook.PodGate{Reader: newReader(t, interceptor.Funcs{})}
			response := handler.Handle(t.Context(), create(test.in))
			g.Expect(response.Allowed).To(BeTrue(), "%v", response.Result)
			if !test.gated {
				g.Expect(response.Patches).To(BeEmpty())
				return
			}
			patched := apply(g, test.in, response)
			g.Expect(patched).To(ContainSubstring(`{"name":"ferry.dev/dispatched"}`))
			g.Expect(patched).To(ContainSubstring(`"ferry.dev/dispatched":"true"`))
			g.Expect(handler.Handle(t.Context(), create(patched)).Patches).To(BeEmpty(), "a second call")
		})
	}
}

func TestPodsWhoseQueueCannotBeLookedUpAreRefused(t *testing.T) {
	for _, in := range []string{gated(`"labels":{"kueue.x-k8s.io/queue-name":"dispatched"}`)} {
		g := NewWithT(t)
		reader := newReader(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the cache is away")
		}})
		response := (&webhook.PodGate{Reader: reader}).Handle(t.Context(), create(in))
		g.Expect(response.Allowed).To(BeFalse())
		g.Expect(response.Result.Code).To(BeEquivalentTo(http.StatusInternalServerError))
		g.Expect(response.Result.Message).To(And(ContainSubstring("the cache is away"), ContainSubstring("try again")))
	}
	g := NewWithT(t)
	g.Expect((&webhook.PodGate{}).Handle(t.Context(), create("[")).Result.Code).To(BeEquivalentTo(http.StatusBadRequest))
}
