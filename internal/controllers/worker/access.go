package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/fleet"
)

// access is how to reach a worker.
type access struct {
	config      *rest.Config // nil: it is not known yet
	fingerprint string
	// again is when to look anew although nothing tells of a change; zero: not needed.
	again time.Duration
}

// problem is why a worker cannot be reached with what its MultiKueueCluster names.
type problem struct {
	reason, message string
	again           time.Duration // as in access
}

// access loads and checks the credentials of a cluster. The error is the manager's API failing, which says nothing
// about the cluster.
func (r *Reconciler) access(ctx context.Context, cluster *kueue.MultiKueueCluster) (access, *problem, error) {
	source := cluster.Spec.ClusterSource
	if source.ClusterProfileRef != nil {
		return r.byProfile(ctx, cluster.Name, source.ClusterProfileRef.Name)
	}
	data, trouble, err := r.kubeConfig(ctx, source.KubeConfig)
	if trouble != nil || err != nil {
		return access{}, trouble, err
	}
	cfg, fingerprint, reason, err := fleet.ParseKubeConfig(data, r.AllowInsecure)
	if err != nil {
		return access{}, &problem{reason: reason, message: err.Error()}, nil
	}
	return access{config: cfg, fingerprint: fingerprint}, nil, nil
}

func (r *Reconciler) kubeConfig(ctx context.Context, ref *kueue.KubeConfig) ([]byte, *problem, error) {
	switch {
	case ref == nil:
		return nil, bad("kubeconfig reference is nil: set clusterSource.kubeConfig"), nil
	case ref.LocationType == kueue.PathLocationType:
		data, err := r.Files.Load(ref.Location)
		if err != nil {
			return nil, bad("%v", err), nil
		}
		return data, nil, nil
	}
	return r.fromSecret(ctx, ref.Location)
}

func (r *Reconciler) fromSecret(ctx context.Context, name string) ([]byte, *problem, error) {
	secret := &corev1.Secret{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, bad("secrets %q not found: create this Secret in namespace %s with the kubeconfig under the key %q",
			name, r.Namespace, kueue.MultiKueueConfigSecretKey), nil
	case err != nil:
		return nil, nil, err
	}
	data, found := secret.Data[kueue.MultiKueueConfigSecretKey]
	if !found {
		return nil, bad("key %q not found in secret %q, which has %s: store the kubeconfig under that key in namespace %s",
			kueue.MultiKueueConfigSecretKey, name, keysOf(secret), r.Namespace), nil
	}
	return data, nil, nil
}

// keysOf never tells a value.
func keysOf(secret *corev1.Secret) string {
	if len(secret.Data) == 0 {
		return "no keys"
	}
	return fmt.Sprintf("%q", slices.Sorted(maps.Keys(secret.Data)))
}

func bad(format string, args ...any) *problem {
	return &problem{reason: fleet.ReasonBadKubeConfig, message: fmt.Sprintf(format, args...)}
}
