package worker

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	inventoryaccess "sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/profile"
)

// TestByProfile: whatever is wrong with a profile is told, and looked at again; a plugin at work changes nothing.
func TestByProfile(t *testing.T) {
	resource := schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "clusterprofiles"}
	for name, c := range map[string]struct {
		fails          error
		server         string
		provider       string
		call, contains string
	}{
		"no CRD":        {fails: &meta.NoKindMatchError{}, call: "unusable w1 BadClusterProfile", contains: "install their CRD"},
		"no profile":    {call: "unusable w1 BadClusterProfile", contains: "create it in namespace ferry-system"},
		"no right":      {fails: apierrors.NewForbidden(resource, "p", errors.New("no")), call: "unusable w1 BadClusterProfile", contains: "update Ferry's role"},
		"other plugins": {server: "https://worker1.example:6443", provider: "theirs", call: "unusable w1 BadClusterProfile", contains: "accessProviders"},
		"no https":      {server: "http://worker1.example", provider: "ours", call: "unusable w1 BadRestConfig", contains: "use https"},
		"good":          {server: "https://worker1.example:6443", provider: "ours", call: "set w1 https://worker1.example:6443"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var objects []client.Object
			if c.server != "" {
				p := &inventory.ClusterProfile{}
				p.Namespace, p.Name = "ferry-system", "p"
				p.Status.AccessProviders = []inventory.AccessProvider{{Name: c.provider, Cluster: clientcmdv1.Cluster{Server: c.server}}}
				objects = append(objects, p)
			}
			w := newWorld(t, append(objects, cluster(kueue.ClusterSource{ClusterProfileRef: &kueue.ClusterProfileReference{Name: "p"}}))...)
			w.fail = func(obj client.Object) error {
				if _, is := obj.(*inventory.ClusterProfile); is {
					return c.fails
				}
				return nil
			}
			ready := make(chan struct{}, 9)
			w.Plugins = &profile.Plugins{Ready: func() { ready <- struct{}{} }, Providers: []inventoryaccess.Provider{{Name: "ours", ExecConfig: &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", Command: "sh",
				Args: []string{"-c", `echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'`},
			}}}}
			again := w.reconcile(g).RequeueAfter
			if c.provider == "ours" {
				g.Expect(w.fleet.calls).To(BeEmpty(), "while the plugin runs")
				g.Eventually(ready, "30s").Should(Receive())
				again = w.reconcile(g).RequeueAfter
			}
			g.Expect(w.fleet.calls).To(Equal([]string{c.call}))
			g.Expect(again).To(And(BeNumerically(">", 0), BeNumerically("<=", profileRecheck+time.Second)))
			if c.contains != "" {
				g.Expect(w.condition(g)).To(HaveValue(HaveField("Message", ContainSubstring(c.contains))))
			}
		})
	}
}
