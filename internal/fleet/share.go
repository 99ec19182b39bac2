package fleet

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// shared keeps one of each text that many copies of a Workload have in common, over all workers: their names, marks and
// messages. What it gives is never changed by anybody.
type shared struct {
	mu    sync.Mutex
	texts map[string]string
	maps  map[string]map[string]string
}

// mostShared bounds what is kept for those to come: beyond it the table is begun anew, and later copies share anew.
const mostShared = 1 << 18

func (s *shared) textLocked(of string) string {
	if one, found := s.texts[of]; found {
		return one
	}
	if s.texts == nil || len(s.texts) >= mostShared {
		s.texts, s.maps = map[string]string{}, map[string]map[string]string{}
	}
	of = strings.Clone(of) // it may be a part of something longer
	s.texts[of] = of
	return of
}

// workload lets a cached copy share what others have too.
func (s *shared) workload(wl *kueue.Workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(&wl.APIVersion, &wl.Kind, &wl.Namespace, &wl.Name, (*string)(&wl.Spec.QueueName))
	wl.Labels, wl.Annotations = s.mapLocked(wl.Labels), s.mapLocked(wl.Annotations)
	for i := range wl.Finalizers {
		s.each(&wl.Finalizers[i])
	}
	for i := range wl.OwnerReferences {
		owner := &wl.OwnerReferences[i]
		s.each(&owner.APIVersion, &owner.Kind, &owner.Name)
	}
	// A list that was read item by item has room for more.
	wl.Status.Conditions = slices.Clip(slices.Clone(wl.Status.Conditions))
	for i := range wl.Status.Conditions {
		s.condition(&wl.Status.Conditions[i])
	}
}

func (s *shared) condition(c *metav1.Condition) {
	s.each(&c.Type, (*string)(&c.Status), &c.Reason, &c.Message)
}

func (s *shared) each(texts ...*string) {
	for _, text := range texts {
		*text = s.textLocked(*text)
	}
}

// mapLocked gives one map for all that have the same labels or annotations.
func (s *shared) mapLocked(of map[string]string) map[string]string {
	if of == nil {
		return nil
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		key.WriteString(strconv.Quote(name) + strconv.Quote(of[name]))
	}
	if one, found := s.maps[key.String()]; found {
		return one
	}
	one := make(map[string]string, len(of))
	for name, value := range of {
		one[s.textLocked(name)] = s.textLocked(value)
	}
	s.maps[key.String()] = one // textLocked made the table
	return one
}
