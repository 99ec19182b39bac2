package observe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// TestPreemptionTimeout: a config's own wins where preemption is orchestrated, if it can be read.
func TestPreemptionTimeout(t *testing.T) {
	for _, c := range []struct {
		annotation      string
		otherwise, want time.Duration
	}{
		{"", time.Minute, time.Minute}, {"90s", time.Minute, 90 * time.Second}, {"90s", 0, 0},
		{"soon", time.Minute, time.Minute}, {"-5m", time.Minute, time.Minute}, {"0s", time.Minute, time.Minute},
	} {
		config := &kueue.MultiKueueConfig{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{kinds.PreemptionTimeoutAnnotation: c.annotation}}}
		if got := preemptionTimeout(config, c.otherwise); got != c.want {
			t.Errorf("%q, otherwise %s: %s, want %s", c.annotation, c.otherwise, got, c.want)
		}
	}
}
