package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// leadsToUs tells whether jobs in this LocalQueue have to pass a check of ours.
// An object that does not exist (yet) leads nowhere.
func leadsToUs(ctx context.Context, reader client.Reader, queue client.ObjectKey) (bool, error) {
	local := &kueue.LocalQueue{}
	if found, err := get(ctx, reader, queue, "LocalQueue", local); !found {
		return false, err
	}
	cluster := &kueue.ClusterQueue{}
	if found, err := get(ctx, reader, client.ObjectKey{Name: string(local.Spec.ClusterQueue)}, "ClusterQueue", cluster); !found {
		return false, err
	}
	if cluster.Spec.AdmissionChecksStrategy == nil {
		return false, nil
	}
	for _, rule := range cluster.Spec.AdmissionChecksStrategy.AdmissionChecks {
		check := &kueue.AdmissionCheck{}
		found, err := get(ctx, reader, client.ObjectKey{Name: string(rule.Name)}, "AdmissionCheck", check)
		if err != nil {
			return false, err
		}
		if found && check.Spec.ControllerName == kueue.MultiKueueControllerName {
			return true, nil
		}
	}
	return false, nil
}

// get reads an object; found is false if it does not exist, and on errors.
func get(ctx context.Context, reader client.Reader, key client.ObjectKey, kind string, into client.Object) (found bool, err error) {
	err = reader.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s %q: %w", kind, key.String(), err)
	}
	return true, nil
}
