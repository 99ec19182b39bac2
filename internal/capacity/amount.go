package capacity

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amountOf counts as Kueue does: CPU in thousandths, all else in units, rounded up.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	units := q.Value()
	switch {
	case q.Sign() <= 0:
		return 0 // there is no less than nothing; no API server of Kueue's lets it in
	case name != corev1.ResourceCPU:
		return units
	case units > math.MaxInt64/1000:
		return math.MaxInt64
	}
	return q.MilliValue()
}

// show writes an amount for people.
func show(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}

// plus and times end at the largest and smallest number there is, instead of beginning anew at the other end.
func plus(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

func minus(a, b int64) int64 {
	if b == math.MinInt64 {
		return plus(plus(a, math.MaxInt64), 1)
	}
	return plus(a, -b)
}

func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
