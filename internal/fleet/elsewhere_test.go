package fleet

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestElsewhere: a kubeconfig leads to another cluster if that answers and lacks what is seen here. Where nobody knows,
// or nothing would be left behind, it counts as the same.
func TestElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		here, there []string // the Workloads
		cluster     string   // that is there
		change      func(there *apiServer)
		token       string
		want        bool
	}{
		"another cluster":                        {[]string{"a"}, nil, "2", nil, "good", true},
		"another with a Workload of that name":   {[]string{"a"}, []string{"a"}, "2", nil, "good", true},
		"the same by another address":            {[]string{"a"}, []string{"a"}, "1", nil, "good", false},
		"the same, and some of it is gone since": {[]string{"a", "b", "c"}, []string{"c"}, "1", nil, "good", false},
		"nothing of ours here":                   {nil, nil, "2", nil, "good", false},
		"refused there":                          {[]string{"a"}, nil, "2", nil, "bad", false},
		"no answer there":                        {[]string{"a"}, nil, "2", func(there *apiServer) { there.fail("*", drop) }, "good", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			here, there := newAPIServer(t), newAPIServer(t)
			here.cluster, there.cluster = "1", test.cluster
			for _, w := range test.here {
				here.put("workloads", "kueue.x-k8s.io/v1beta2", "Workload", w, "me")
			}
			for _, w := range test.there {
				there.put("workloads", "kueue.x-k8s.io/v1beta2", "Workload", w, "me")
			}
			if test.change != nil {
				test.change(there)
			}
			f, _ := startFleet(t, func(*Options) {})
			f.Set("w1", here.config("good"), "1")
			mustConn(g, f, "w1")
			g.Expect(f.Elsewhere(t.Context(), "w1", there.config(test.token))).To(Equal(test.want))
			g.Expect(f.Elsewhere(t.Context(), "w1", here.config("other"))).To(BeFalse(), "another login")
			g.Expect(f.Elsewhere(t.Context(), "w2", there.config("good"))).To(BeFalse(), "no such worker")
			g.Expect(f.Status("w1").Reach).To(Equal(Connected))
		})
	}
}
