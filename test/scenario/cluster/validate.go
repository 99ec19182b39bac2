package cluster

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func validate(old, next client.Object) []string {
	switch o := old.(type) {
	case *kueue.Workload:
		return workloadErrors(o, next.(*kueue.Workload))
	case *unstructured.Unstructured:
		if o.GetKind() == "Job" {
			return jobErrors(o, next.(*unstructured.Unstructured))
		}
	}
	return nil
}

// workloadErrors are Kueue's rules about who may be assigned.
func workloadErrors(old, next *kueue.Workload) []string {
	var errs []string
	was, is := old.Status.ClusterName, next.Status.ClusterName
	if was == nil && is != nil && !slices.Contains(old.Status.NominatedClusterNames, *is) {
		errs = append(errs, "clusterName "+*is+" was not nominated before")
	}
	if was != nil && is != nil && *was != *is {
		errs = append(errs, "clusterName is immutable once set")
	}
	if is != nil && len(next.Status.NominatedClusterNames) > 0 {
		errs = append(errs, "clusterName and nominatedClusterNames exclude each other")
	}
	return errs
}

func invalid(key Key, errs []string) error {
	list := field.ErrorList{field.InternalError(field.NewPath("status"), errors.New(strings.Join(errs, "; ")))}
	return apierrors.NewInvalid(schema.GroupKind{Kind: key.Kind}, key.Name, list)
}
