package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	utilruntime.Must(inventory.AddToScheme(scheme))
	return scheme
}

func managerOptions(o Options) ctrl.Options {
	c := o.Config
	return ctrl.Options{
		Scheme:                        newScheme(),
		Logger:                        o.Log,
		Metrics:                       metricsOptions(c.Metrics),
		HealthProbeBindAddress:        c.Health.HealthProbeBindAddress,
		LeaderElection:                *c.LeaderElection.LeaderElect,
		LeaderElectionID:              c.LeaderElection.ResourceName,
		LeaderElectionNamespace:       c.LeaderElection.ResourceNamespace,
		LeaderElectionReleaseOnCancel: true,
		WebhookServer: ctrlwebhook.NewServer(ctrlwebhook.Options{
			Host: c.Webhook.Host, Port: *c.Webhook.Port, CertDir: c.Webhook.CertDir,
		}),
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&kueue.Workload{}: {Transform: leanWorkload},
				&corev1.Secret{}:  {Namespaces: map[string]cache.Config{c.Namespace: {}}},
			},
		},
	}
}

func leanWorkload(in any) (any, error) {
	if wl, is := in.(*kueue.Workload); is {
		apply.Strip(wl)
		kinds.LeanWorkload(wl)
	}
	return in, nil
}

func metricsOptions(m config.Metrics) metricsserver.Options {
	options := metricsserver.Options{BindAddress: m.BindAddress, SecureServing: *m.SecureServing}
	if options.SecureServing {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

// originOf is the configured origin, or one that no other manager has.
func originOf(ctx context.Context, mgr ctrl.Manager, c *config.Configuration) (string, error) {
	if c.MultiKueue.Origin != "" {
		return c.MultiKueue.Origin, nil
	}
	system := &corev1.Namespace{}
	if err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		return "", fmt.Errorf("deriving the origin from the UID of namespace kube-system (or set multiKueue.origin): %w", err)
	}
	return "ferry-" + string(system.UID), nil
}

// role is the value of Kueue's replica_role label for a process that writes.
func role(c *config.Configuration) string {
	if *c.LeaderElection.LeaderElect {
		return "leader"
	}
	return "standalone"
}

// startInformers opens the caches that controllers and webhooks read, on every
// replica: a standby that becomes leader, or gets a webhook call, has them filled.
// Those of the jobs are the room jobs'.
func startInformers(ctx context.Context, mgr ctrl.Manager) error {
	objects := []client.Object{
		&kueue.Workload{}, &kueue.AdmissionCheck{}, &kueue.MultiKueueConfig{}, &kueue.MultiKueueCluster{}, &kueue.LocalQueue{}, &kueue.ClusterQueue{},
	}
	for _, obj := range objects {
		if _, err := mgr.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("opening a cache: %w", err)
		}
	}
	return nil
}

// addProbes serves /healthz, and /readyz once the caches are filled and the webhooks answer.
func addProbes(mgr ctrl.Manager, all *jobs.Jobs) error {
	filled := &atomic.Bool{}
	ready := func(*http.Request) error {
		if !filled.Load() {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
	return errors.Join(
		mgr.Add(everywhere(func(ctx context.Context) error {
			filled.Store(mgr.GetCache().WaitForCacheSync(ctx) && all.Await(ctx))
			return nil
		})),
		mgr.AddHealthzCheck("alive", func(*http.Request) error { return nil }),
		mgr.AddReadyzCheck("caches", ready),
		mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()),
	)
}

// everywhere runs on every replica, leader or not.
type everywhere func(context.Context) error

var _ manager.LeaderElectionRunnable = everywhere(nil)

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }
func (e everywhere) NeedLeaderElection() bool        { return false }
