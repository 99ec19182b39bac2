package worker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	inventoryaccess "sigs.k8s.io/cluster-inventory-api/pkg/access"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/profile"
)

// Options configure the controller.
type Options struct {
	Fleet Fleet
	// States must be told of every change of state in the fleet.
	States *inlet.Inlet[reconcile.Request]
	// Namespace is Ferry's own; the manager's cache must hold its Secrets.
	Namespace string
	// KubeConfigDir holds the files of clusters with locationType Path; Kueue's directory if empty.
	KubeConfigDir string
	// FileRecheck is how often files are read again although nothing told of a change; 1 minute if zero.
	FileRecheck time.Duration
	// AllowInsecure lets connections without TLS through; see fleet.ParseKubeConfig.
	AllowInsecure bool
	// Providers are the credential plugins for ClusterProfiles.
	Providers []inventoryaccess.Provider
	// Failing, Left, Vacated and WithdrawTimeout are the Reconciler's.
	Failing         func(worker string) string
	Left            func(ctx context.Context, worker string) []string
	Vacated         func(worker string)
	WithdrawTimeout time.Duration
}

// Setup adds the controller to the manager.
//
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=multikueueclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=multikueueclusters/status,verbs=get;patch
// +kubebuilder:rbac:groups="",namespace=ferry-system,resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,namespace=ferry-system,resources=clusterprofiles,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
func Setup(mgr ctrl.Manager, o Options) error {
	if o.KubeConfigDir == "" {
		o.KubeConfigDir = fleet.DefaultKubeConfigDir
	}
	log := mgr.GetLogger().WithName("worker")
	all := &lister{client: mgr.GetClient(), namespace: o.Namespace}
	files := fleet.NewPathLoader(o.KubeConfigDir, o.FileRecheck, log, func() { o.States.Add(all.withFiles(context.Background())...) })
	if err := mgr.Add(files); err != nil {
		return fmt.Errorf("adding the watch on kubeconfig files: %w", err)
	}
	plugins := &profile.Plugins{Providers: o.Providers, Ready: func() { o.States.Add(all.withProfiles(context.Background())...) }}
	r := &Reconciler{
		Profiles: mgr.GetAPIReader(), Plugins: plugins,
		Client: mgr.GetClient(), Namespace: o.Namespace, AllowInsecure: o.AllowInsecure,
		Fleet: o.Fleet, Files: files, Recorder: mgr.GetEventRecorder("ferry"),
		Failing: o.Failing, Left: o.Left, Vacated: o.Vacated, WithdrawTimeout: o.WithdrawTimeout,
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("worker").
		For(&kueue.MultiKueueCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(all.ofSecret)).
		WatchesRawSource(o.States).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of MultiKueueClusters: %w", err)
	}
	return nil
}

// lister finds the clusters that a change of credentials concerns. There are few clusters, and they are in the
// manager's cache, so it looks at all.
type lister struct {
	client    client.Reader
	namespace string
}

func (l *lister) ofSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	if secret.GetNamespace() != l.namespace {
		return nil
	}
	return l.matching(ctx, func(ref *kueue.KubeConfig) bool {
		return ref.LocationType != kueue.PathLocationType && ref.Location == secret.GetName()
	})
}

func (l *lister) withFiles(ctx context.Context) []reconcile.Request {
	return l.matching(ctx, func(ref *kueue.KubeConfig) bool { return ref.LocationType == kueue.PathLocationType })
}

func (l *lister) withProfiles(ctx context.Context) []reconcile.Request {
	return l.matchingSource(ctx, func(source *kueue.ClusterSource) bool { return source.ClusterProfileRef != nil })
}

func (l *lister) matching(ctx context.Context, wanted func(*kueue.KubeConfig) bool) []reconcile.Request {
	return l.matchingSource(ctx, func(source *kueue.ClusterSource) bool { return source.KubeConfig != nil && wanted(source.KubeConfig) })
}

func (l *lister) matchingSource(ctx context.Context, wanted func(*kueue.ClusterSource) bool) []reconcile.Request {
	clusters := &kueue.MultiKueueClusterList{}
	if err := l.client.List(ctx, clusters); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing MultiKueueClusters to see whom changed credentials concern")
		return nil
	}
	var requests []reconcile.Request
	for i := range clusters.Items {
		if wanted(&clusters.Items[i].Spec.ClusterSource) {
			requests = append(requests, Request(clusters.Items[i].Name))
		}
	}
	return requests
}

// Request asks for the reconciliation of a cluster.
func Request(cluster string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: cluster}}
}
