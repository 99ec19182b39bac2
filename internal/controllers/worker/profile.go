package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/profile"
)

// profileRecheck is how often a ClusterProfile is read. It is not watched: its CRD may come and go, and profiles seldom
// change. So each worker that has one costs six requests a minute on the manager.
const profileRecheck = 10 * time.Second

// byProfile is the way to a worker that a ClusterProfile in Ferry's namespace describes.
func (r *Reconciler) byProfile(ctx context.Context, worker, name string) (access, *problem, error) {
	found := &inventory.ClusterProfile{}
	err := r.Profiles.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, found)
	switch {
	case meta.IsNoMatchError(err):
		return access{}, badProfile("the manager has no ClusterProfiles: install their CRD of group multicluster.x-k8s.io"), nil
	case apierrors.IsNotFound(err):
		return access{}, badProfile("clusterprofiles %q not found: create it in namespace %s", name, r.Namespace), nil
	case apierrors.IsForbidden(err):
		return access{}, badProfile("%v: update Ferry's role in namespace %s", err, r.Namespace), nil
	case err != nil:
		return access{}, nil, err
	}
	way, err := r.Plugins.Access(found, r.Fleet.Status(worker).Reach == fleet.Lost)
	switch {
	case errors.Is(err, profile.ErrPending):
		return access{again: profileRecheck}, nil, nil
	case err != nil:
		return access{}, badProfile("%v", err), nil
	}
	if err := fleet.CheckConfig(way.Config, r.AllowInsecure); err != nil {
		return access{}, &problem{reason: fleet.ReasonBadRestConfig, message: err.Error(), again: profileRecheck}, nil
	}
	return access{config: way.Config, fingerprint: way.Fingerprint, again: min(profileRecheck, max(way.Next.Sub(r.now()), time.Second))}, nil, nil
}

func badProfile(format string, args ...any) *problem {
	return &problem{reason: fleet.ReasonBadClusterProfile, message: fmt.Sprintf(format, args...), again: profileRecheck}
}
