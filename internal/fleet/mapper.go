package fleet

import (
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// mapping ties a kind to its resource on a worker.
type mapping struct {
	kind  schema.GroupVersionKind
	names resourceNames
	scope meta.RESTScope
}

type resourceNames struct{ plural, singular string }

// mapper is a RESTMapper that knows what it was told and never asks a server. The one of controller-runtime asks
// under a lock, so that one request that hangs would stop every other.
type mapper struct {
	current atomic.Pointer[meta.DefaultRESTMapper]

	mu    sync.Mutex // serializes add
	known []mapping
}

var _ meta.RESTMapper = (*mapper)(nil)

func newMapper() *mapper {
	m := &mapper{}
	group := kueue.SchemeGroupVersion
	m.add(
		mapping{corev1.SchemeGroupVersion.WithKind("Event"), resourceNames{"events", "event"}, meta.RESTScopeNamespace},
		mapping{group.WithKind("Workload"), resourceNames{"workloads", "workload"}, meta.RESTScopeNamespace},
		mapping{group.WithKind("LocalQueue"), resourceNames{"localqueues", "localqueue"}, meta.RESTScopeNamespace},
		mapping{group.WithKind("ClusterQueue"), resourceNames{"clusterqueues", "clusterqueue"}, meta.RESTScopeRoot},
		mapping{group.WithKind("Cohort"), resourceNames{"cohorts", "cohort"}, meta.RESTScopeRoot},
		mapping{group.WithKind("ResourceFlavor"), resourceNames{"resourceflavors", "resourceflavor"}, meta.RESTScopeRoot},
		mapping{group.WithKind("WorkloadPriorityClass"), resourceNames{"workloadpriorityclasses", "workloadpriorityclass"}, meta.RESTScopeRoot},
	)
	return m
}

// add makes kinds known; the last word on a kind counts.
func (m *mapper) add(mappings ...mapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, added := range mappings {
		m.known = slices.DeleteFunc(m.known, func(k mapping) bool { return k.kind == added.kind })
		m.known = append(m.known, added)
	}
	fresh := meta.NewDefaultRESTMapper(nil)
	for _, k := range m.known {
		gv := k.kind.GroupVersion()
		fresh.AddSpecific(k.kind, gv.WithResource(k.names.plural), gv.WithResource(k.names.singular), k.scope)
	}
	m.current.Store(fresh)
}

// KindFor implements meta.RESTMapper.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.current.Load().KindFor(resource)
}

// KindsFor implements meta.RESTMapper.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.current.Load().KindsFor(resource)
}

// ResourceFor implements meta.RESTMapper.
func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.current.Load().ResourceFor(input)
}

// ResourcesFor implements meta.RESTMapper.
func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.current.Load().ResourcesFor(input)
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.current.Load().RESTMapping(gk, versions...)
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.current.Load().RESTMappings(gk, versions...)
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return m.current.Load().ResourceSingularizer(resource)
}
