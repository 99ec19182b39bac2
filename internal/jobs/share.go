package jobs

import (
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shared keeps one of each part that cached jobs have in common: names of fields, images, resources, environments,
// whole pod templates. As maps, they take most of the room that a job takes. What is shared is never changed by anybody.
type shared struct {
	mu    sync.Mutex
	parts map[uint64]any
}

// mostShared bounds what is kept for those to come, and with it what is kept of jobs that are gone: beyond it the table
// is begun anew, and later jobs share anew.
const mostShared = 1 << 14

var partSeed = maphash.MakeSeed()

// job lets a job that is about to be cached share what others have too. Its name, UID and the like are its own.
func (s *shared) job(job *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := make(map[string]any, len(job.Object))
	for field, value := range job.Object {
		if field != "metadata" {
			value, _ = s.part(value)
		}
		whole[s.text(field)] = value
	}
	metadata, _ := job.Object["metadata"].(map[string]any)
	own := make(map[string]any, len(metadata))
	for field, value := range metadata {
		if _, isText := value.(string); !isText || field == "namespace" {
			value, _ = s.part(value)
		}
		own[s.text(field)] = value
	}
	whole["metadata"] = own
	job.Object = whole
}

// part is the one to keep of all that are equal to it, and its hash; the lock is held.
func (s *shared) part(value any) (any, uint64) {
	var hash uint64
	switch v := value.(type) {
	case string:
		hash = maphash.String(partSeed, v)
	case map[string]any:
		made := make(map[string]any, len(v))
		for field, of := range v {
			one, h := s.part(of)
			made[s.text(field)] = one
			hash += maphash.Comparable(partSeed, entry{field, h}) // in any order
		}
		value, hash = made, hash+1
	case []any:
		made := make([]any, len(v))
		for i, of := range v {
			one, h := s.part(of)
			made[i] = one
			hash = maphash.Comparable(partSeed, [2]uint64{hash, h})
		}
		value, hash = made, hash+2
	default:
		return value, maphash.Comparable(partSeed, value) // a number, a truth value, or nothing
	}
	if one, found := s.parts[hash]; found && isSame(one, value) {
		return one, hash
	}
	if s.parts == nil || len(s.parts) >= mostShared {
		s.parts = map[uint64]any{}
	}
	if text, isText := value.(string); isText {
		value = strings.Clone(text) // it may be a part of something longer
	}
	s.parts[hash] = value
	return value, hash
}

type entry struct {
	field string
	hash  uint64
}

func (s *shared) text(of string) string {
	one, _ := s.part(of)
	return one.(string)
}

// isSame tells whether two parts are equal. What they are made of is shared already: where the table was begun anew
// in between it is not, and they count as different.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		return is && maps.EqualFunc(a, b, isOne)
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, isOne)
	default:
		return isOne(a, b)
	}
}

// isOne tells whether two values are one and the same map or list, or equal otherwise.
func isOne(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if !x.IsValid() || !y.IsValid() || x.Kind() != y.Kind() {
		return x.IsValid() == y.IsValid() && !x.IsValid()
	}
	switch x.Kind() {
	case reflect.Map:
		return x.Pointer() == y.Pointer()
	case reflect.Slice:
		return x.Pointer() == y.Pointer() && x.Len() == y.Len()
	default:
		return a == b
	}
}
