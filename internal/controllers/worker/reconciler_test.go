package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
)

const kubeConfig = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://worker1.example:6443"}}]
users: [{name: u, user: {token: s3cr3t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`

// fakeFleet remembers what it was told, and says what the test wants.
type fakeFleet struct {
	calls  []string
	status fleet.Status
	other  bool // the new kubeconfig leads to another cluster
}

func (f *fakeFleet) Leave(worker string, leaving bool) {
	if f.status.Leaving != leaving {
		f.calls = append(f.calls, fmt.Sprintf("leave %s %v", worker, leaving))
	}
	f.status.Leaving = leaving
}

func (f *fakeFleet) Elsewhere(context.Context, string, *rest.Config) bool { return f.other }

func (f *fakeFleet) Set(worker string, cfg *rest.Config, _ string) {
	f.calls = append(f.calls, "set "+worker+" "+cfg.Host)
}

func (f *fakeFleet) Unusable(worker, reason, message string) {
	f.calls = append(f.calls, "unusable "+worker+" "+reason)
	f.status = fleet.Status{Reach: fleet.Unusable, LostSince: time.Now(), Reason: reason, Message: message}
}

func (f *fakeFleet) Remove(worker string)       { f.calls = append(f.calls, "remove "+worker) }
func (f *fakeFleet) Status(string) fleet.Status { return f.status }

type fakeFiles map[string]string

func (f fakeFiles) Load(location string) ([]byte, error) {
	if data, found := f[location]; found {
		return []byte(data), nil
	}
	return nil, errors.New("kubeconfig path is not under the allowed prefix")
}

type world struct {
	*Reconciler
	fleet    *fakeFleet
	recorder *events.FakeRecorder
	writes   int
	fail     func(client.Object) error // of reads
	conflict bool
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kueue.AddToScheme, inventory.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{fleet: &fakeFleet{}, recorder: events.NewFakeRecorder(20), fail: func(client.Object) error { return nil }}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&kueue.MultiKueueCluster{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if err := w.fail(obj); err != nil {
					return err
				}
				return c.Get(ctx, key, obj, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				w.writes++
				if w.conflict {
					return apierrors.NewConflict(schema.GroupResource{Resource: "multikueueclusters"}, obj.GetName(), errors.New("changed"))
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	w.Reconciler = &Reconciler{
		Client: c, Profiles: c, Namespace: "ferry-system", Fleet: w.fleet, Recorder: w.recorder,
		Files: fakeFiles{"/etc/multikueue/kubeconfigs/w1": kubeConfig},
	}
	return w
}

func (w *world) reconcile(g Gomega) reconcile.Result {
	result, err := w.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "w1"}})
	g.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *world) condition(g Gomega) *metav1.Condition {
	cluster := &kueue.MultiKueueCluster{}
	g.Expect(w.Client.Get(context.Background(), client.ObjectKey{Name: "w1"}, cluster)).To(Succeed())
	return meta.FindStatusCondition(cluster.Status.Conditions, "Active")
}

func cluster(source kueue.ClusterSource) *kueue.MultiKueueCluster {
	return &kueue.MultiKueueCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "w1", Generation: 3}, Spec: kueue.MultiKueueClusterSpec{ClusterSource: source},
	}
}

func fromSecret(name string) kueue.ClusterSource {
	return kueue.ClusterSource{KubeConfig: &kueue.KubeConfig{Location: name, LocationType: kueue.SecretLocationType}}
}

func fromFile(path string) kueue.ClusterSource {
	return kueue.ClusterSource{KubeConfig: &kueue.KubeConfig{Location: path, LocationType: kueue.PathLocationType}}
}

func secret(key, data string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ferry-system", Name: "w1-secret"}, Data: map[string][]byte{key: []byte(data)},
	}
}

func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		source  kueue.ClusterSource
		secret  *corev1.Secret
		call    string
		reason  string
		message string
	}{
		"good Secret": {fromSecret("w1-secret"), secret("kubeconfig", kubeConfig), "set w1 https://worker1.example:6443", "", ""},
		"good file":   {fromFile("/etc/multikueue/kubeconfigs/w1"), nil, "set w1 https://worker1.example:6443", "", ""},
		"no Secret": {fromSecret("w1-secret"), nil, "unusable w1 BadKubeConfig", "BadKubeConfig",
			`load client config failed: secrets "w1-secret" not found: create this Secret in namespace ferry-system`},
		"no key": {fromSecret("w1-secret"), secret("config", kubeConfig), "unusable w1 BadKubeConfig", "BadKubeConfig",
			`load client config failed: key "kubeconfig" not found in secret "w1-secret", which has ["config"]: store`},
		"no keys": {fromSecret("w1-secret"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ferry-system", Name: "w1-secret"}},
			"unusable w1 BadKubeConfig", "BadKubeConfig", `load client config failed: key "kubeconfig" not found in secret "w1-secret", which has no keys`},
		"empty": {fromSecret("w1-secret"), secret("kubeconfig", ""), "unusable w1 BadKubeConfig", "BadKubeConfig",
			"load client config failed: the kubeconfig is empty"},
		"not YAML": {fromSecret("w1-secret"), secret("kubeconfig", "test"), "unusable w1 BadKubeConfig", "BadKubeConfig",
			"load client config failed: failed to parse kubeconfig"},
		"exec plugin": {fromSecret("w1-secret"),
			secret("kubeconfig", strings.Replace(kubeConfig, "token: s3cr3t", "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", 1)),
			"unusable w1 InsecureKubeConfig", "InsecureKubeConfig", "load client config failed: exec plugins are not allowed"},
		"file outside": {fromFile("/etc/passwd"), nil, "unusable w1 BadKubeConfig", "BadKubeConfig",
			"load client config failed: kubeconfig path is not under the allowed prefix"},
		"nothing": {kueue.ClusterSource{}, nil, "unusable w1 BadKubeConfig", "BadKubeConfig",
			"load client config failed: kubeconfig reference is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects := []client.Object{cluster(test.source)}
			if test.secret != nil {
				objects = append(objects, test.secret)
			}
			w := newWorld(t, objects...)
			g.Expect(w.reconcile(g)).To(BeZero())
			g.Expect(w.fleet.calls).To(Equal([]string{test.call}))
			condition := w.condition(g)
			if test.reason == "" {
				g.Expect(condition).To(BeNil(), "nothing is known yet")
				return
			}
			g.Expect(condition.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(condition.Reason).To(Equal(test.reason))
			g.Expect(condition.Message).To(HavePrefix(test.message))
			g.Expect(condition.Message).NotTo(ContainSubstring("s3cr3t"))
			g.Expect(condition.ObservedGeneration).To(Equal(int64(3)))
			g.Expect(w.recorder.Events).To(Receive(HavePrefix("Warning " + test.reason)))
		})
	}
}

func TestConditionFollowsTheConnection(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	step := func(status fleet.Status) *metav1.Condition {
		w.fleet.status = status
		w.reconcile(g)
		w.reconcile(g) // and once more: a status that is the same writes nothing
		return w.condition(g)
	}
	lost := fleet.Status{Reach: fleet.Lost, LostSince: time.Now(), Reason: "ClientConnectionFailed", Message: "no route"}

	g.Expect(step(fleet.Status{Reach: fleet.Connecting})).To(BeNil())
	condition := step(fleet.Status{Reach: fleet.Connected, Reason: "Active", Message: "Connected"})
	g.Expect(*condition).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "Active"), HaveField("Message", "Connected")))
	g.Expect(w.recorder.Events).To(Receive(Equal("Normal Connected Connected to worker w1")))
	g.Expect(step(fleet.Status{Reach: fleet.Suspect, Reason: "Active", Message: "a probe failed"})).To(Equal(condition))
	g.Expect(w.writes).To(Equal(1))

	condition = step(lost)
	g.Expect(*condition).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "ClientConnectionFailed"), HaveField("Message", "no route")))
	g.Expect(w.recorder.Events).To(Receive(Equal("Warning ClientConnectionFailed no route")))
	lost.LostSince = time.Now()
	g.Expect(step(lost)).To(Equal(condition))
	g.Expect(step(fleet.Status{Reach: fleet.Connecting})).To(Equal(condition), "an attempt is no news")
	g.Expect(w.writes).To(Equal(2))
	g.Expect(w.recorder.Events).NotTo(Receive())
}

func TestMissingSecretHeals(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, cluster(fromSecret("w1-secret")))
	w.reconcile(g)
	g.Expect(w.condition(g).Reason).To(Equal("BadKubeConfig"))
	s := secret("kubeconfig", kubeConfig)
	g.Expect(w.Client.Create(context.Background(), s)).To(Succeed())
	all := &lister{client: w.Client, namespace: "ferry-system"}
	g.Expect(all.ofSecret(context.Background(), s)).To(Equal([]reconcile.Request{Request("w1")}))
	w.reconcile(g)
	w.fleet.status = fleet.Status{Reach: fleet.Connected}
	w.reconcile(g)
	g.Expect(w.condition(g).Reason).To(Equal("Active"))
}

func TestOtherSecretsConcernNobody(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, cluster(fromFile("w1-secret")))
	all := &lister{client: w.Client, namespace: "ferry-system"}
	s := secret("kubeconfig", kubeConfig)
	g.Expect(all.ofSecret(context.Background(), s)).To(BeEmpty(), "a file of the same name")
	g.Expect(all.withFiles(context.Background())).To(Equal([]reconcile.Request{Request("w1")}))
	s.Namespace = "tenant"
	g.Expect(all.ofSecret(context.Background(), s)).To(BeEmpty())
}

func TestRemoved(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t)
	w.reconcile(g)
	g.Expect(w.fleet.calls).To(Equal([]string{"remove w1"}))

	leaving := cluster(fromSecret("w1-secret"))
	leaving.Finalizers = []string{"example.com/hold"}
	w = newWorld(t, leaving, secret("kubeconfig", kubeConfig))
	g.Expect(w.Client.Delete(context.Background(), leaving)).To(Succeed())
	w.reconcile(g)
	g.Expect(w.fleet.calls).To(Equal([]string{"remove w1"}))
}

func TestTheManagersTroubleIsNotTheWorkers(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	w.fail = func(obj client.Object) error {
		if _, ok := obj.(*corev1.Secret); ok {
			return errors.New("etcd is down")
		}
		return nil
	}
	_, err := w.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "w1"}})
	g.Expect(err).To(MatchError(ContainSubstring("etcd is down")))
	g.Expect(w.fleet.calls).To(BeEmpty(), "a connection is not given up because the manager cannot be read")
}

func TestConflictIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, cluster(fromSecret("w1-secret")))
	w.conflict = true
	g.Expect(w.reconcile(g).RequeueAfter).To(BeNumerically(">", 0))
	g.Expect(w.recorder.Events).NotTo(Receive(), "what was not written is not told")
	w.conflict = false
	g.Expect(w.reconcile(g)).To(BeZero())
	g.Expect(w.condition(g).Reason).To(Equal("BadKubeConfig"))
	g.Expect(w.recorder.Events).To(Receive())
}

func TestOtherConditionsStay(t *testing.T) {
	g := NewWithT(t)
	c := cluster(fromSecret("w1-secret"))
	c.Status.Conditions = []metav1.Condition{{Type: "Theirs", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}}
	w := newWorld(t, c)
	w.reconcile(g)
	g.Expect(w.Client.Get(context.Background(), client.ObjectKey{Name: "w1"}, c)).To(Succeed())
	g.Expect(c.Status.Conditions).To(ConsistOf(HaveField("Type", "Theirs"), HaveField("Type", "Active")))
}

// TestKindsThatFailAreShown: beside the Active condition, and only on workers where it ever happened.
func TestKindsThatFailAreShown(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(t, cluster(fromSecret("w1-secret")), secret("kubeconfig", kubeConfig))
	failing := ""
	w.Failing = func(string) string { return failing }
	w.fleet.status = fleet.Status{Reach: fleet.Connected, Reason: "Active", Message: "Connected"}
	step := func() *metav1.Condition {
		w.reconcile(g)
		w.reconcile(g)
		cluster := &kueue.MultiKueueCluster{}
		g.Expect(w.Client.Get(context.Background(), client.ObjectKey{Name: "w1"}, cluster)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, "Active")).To(BeTrue())
		return meta.FindStatusCondition(cluster.Status.Conditions, JobsRun)
	}
	g.Expect(step()).To(BeNil())
	g.Expect(w.recorder.Events).To(Receive(HavePrefix("Normal Connected")))
	failing = "Job.batch: could not be placed there"
	g.Expect(*step()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "JobsFail"), HaveField("Message", failing)))
	g.Expect(w.recorder.Events).To(Receive(Equal("Warning JobsFail " + failing)))
	failing = ""
	g.Expect(*step()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "JobsRun")))
	g.Expect(w.recorder.Events).To(Receive(HavePrefix("Normal JobsRun")))
	g.Expect(w.writes).To(Equal(3))
}
