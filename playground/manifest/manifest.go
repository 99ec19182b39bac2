// Package manifest reads Kubernetes YAML, adapts webhooks to a process on loopback, and applies the result.
package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner is the playground's name in server-side apply.
const fieldOwner = client.FieldOwner("playground")

// Parse reads the objects of a YAML stream.
func Parse(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// File reads the objects of one file.
func File(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	objects, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", path, err)
	}
	return objects, nil
}

// Dir reads the objects of all .yaml files of a folder, in the order of their names. kustomize's own files are
// left out. A folder that does not exist holds nothing.
func Dir(dir string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list manifests in %s: %w", dir, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "kustomization") {
			continue
		}
		more, err := File(file)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// Apply makes or changes the objects by server-side apply, in order.
func Apply(ctx context.Context, c client.Client, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), fieldOwner, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// clusterScoped are the kinds in Ferry's and Kueue's RBAC that have no namespace.
var clusterScoped = []string{"Namespace", "ClusterRole", "ClusterRoleBinding"}

// InNamespace puts RBAC objects and the ServiceAccounts that they speak of into a namespace, as kustomize does.
func InNamespace(namespace string, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if !slices.Contains(clusterScoped, o.GetKind()) {
			o.SetNamespace(namespace)
		}
		subjects, found, err := unstructured.NestedSlice(o.Object, "subjects")
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if !found {
			continue
		}
		for _, s := range subjects {
			if subject, ok := s.(map[string]any); ok && subject["kind"] == "ServiceAccount" {
				subject["namespace"] = namespace
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, subjects, "subjects"); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Object builds an unstructured object, to be filled by the caller.
func Object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Established tells whether the API server serves a CustomResourceDefinition.
func Established(crd *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == "Established" && condition["status"] == string(metav1.ConditionTrue)
	})
}

// ListOf is an empty list of the kind that a CustomResourceDefinition defines, in its first version.
func ListOf(crd *unstructured.Unstructured) (*unstructured.UnstructuredList, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if group == "" || kind == "" || len(versions) == 0 {
		return nil, fmt.Errorf("%s %s is no CustomResourceDefinition", crd.GetKind(), crd.GetName())
	}
	first, _ := versions[0].(map[string]any)
	version, _ := first["name"].(string)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	return list, nil
}
