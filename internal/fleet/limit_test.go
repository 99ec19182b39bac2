package fleet

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestRequestLimit: a negative QPS lifts the limit, as client-go has it; else only the burst comes at once.
func TestRequestLimit(t *testing.T) {
	for name, test := range map[string]struct {
		qps      float32
		accepted int
	}{
		"lifted":  {-1, 1000},
		"limited": {0.001, 10},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{QPS: test.qps, Burst: 10}.withDefaults()
			limiter, accepted := newWorker("w1", &options, nil).limiter, 0
			for range 1000 {
				if limiter.TryAccept() {
					accepted++
				}
			}
			NewWithT(t).Expect(accepted).To(Equal(test.accepted))
		})
	}
}
