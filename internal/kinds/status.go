package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// SameStatus tells whether job already has this status.
func SameStatus(job *unstructured.Unstructured, status map[string]any) bool {
	return EqualStatus(statusOf(job), status)
}

// EqualStatus compares two statuses by their JSON, in which all numbers are alike.
func EqualStatus(a, b map[string]any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
