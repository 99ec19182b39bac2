package observe

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// hashes are those of a job's Workloads, at these versions of them.
type hashes struct {
	versions []string
	of       map[types.UID]string
}

// specHashesOf gives kinds.SpecHash of a job's Workloads, and makes it only once for each version of them.
func (m *Memory) specHashesOf(ref kinds.Ref, wls []*kueue.Workload) map[types.UID]string {
	m.mu.Lock()
	known := m.read(ref).hashes
	m.mu.Unlock()
	if len(wls) == 0 {
		return nil
	}
	if slices.EqualFunc(wls, known.versions, func(wl *kueue.Workload, version string) bool { return wl.ResourceVersion == version }) {
		return known.of
	}
	now := hashes{of: make(map[types.UID]string, len(wls))}
	for _, wl := range wls {
		now.versions = append(now.versions, wl.ResourceVersion)
		now.of[wl.UID] = kinds.SpecHash(wl)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(ref).hashes = now
	return now.of
}
