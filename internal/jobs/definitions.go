package jobs

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

var definition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// watchDefinitions looks for a kind at once when a CRD of its group changes. Without the permission to watch CRDs kinds
// are still found, only later.
func (j *Jobs) watchDefinitions(ctx context.Context) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(definition)
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    j.definitionChanged,
		UpdateFunc: func(_, after any) { j.definitionChanged(after) },
		DeleteFunc: j.definitionChanged,
	}
	life, end := context.WithCancel(ctx)
	defer end()
	failed := make(chan error, 1)
	_, _, err := j.startCache(life, cached{object: object, strip: onlyName, handler: handler}, func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err == nil {
		select {
		case err = <-failed:
		case <-ctx.Done():
			return
		}
	}
	j.options.Log.Error(err, "CRDs cannot be watched: a kind that is installed later is noticed later", "within", j.options.RecheckMost)
}

// definitionChanged goes by the name of the CRD, which is plural.group.
func (j *Jobs) definitionChanged(obj any) {
	if last, unknown := obj.(toolscache.DeletedFinalStateUnknown); unknown {
		obj = last.Obj
	}
	if crd, is := obj.(*metav1.PartialObjectMetadata); is {
		_, group, _ := strings.Cut(crd.Name, ".")
		j.Look(group)
	}
}

// onlyName keeps of a CRD what is looked at.
func onlyName(in any) (any, error) {
	crd, is := in.(*metav1.PartialObjectMetadata)
	if !is {
		return in, nil
	}
	crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
	return crd, nil
}
