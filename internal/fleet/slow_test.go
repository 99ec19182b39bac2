package fleet

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// slowLink lets a response through piece by piece; after so many bytes it stalls, if any are given.
type slowLink struct {
	http.ResponseWriter
	stalls int
	hangs  func()
}

const piece, gap = 200, 20 * time.Millisecond

func (s *slowLink) Write(all []byte) (int, error) {
	for from := 0; from < len(all); from += piece {
		part := all[from:min(from+piece, len(all))]
		if s.stalls > 0 {
			if s.stalls -= len(part); s.stalls <= 0 {
				s.hangs()
			}
		}
		time.Sleep(gap)
		if _, err := s.ResponseWriter.Write(part); err != nil {
			return from, err
		}
		s.Flush()
	}
	return len(all), nil
}

func (s *slowLink) Flush() { s.ResponseWriter.(http.Flusher).Flush() }

// slowLists makes the first lists of a resource slow: those that come as a stream, or as one answer by servers
// that know no streams.
func slowLists(api *apiServer, resource string, streams bool, stalls int) {
	slow := func(a *apiServer, w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		return &slowLink{w, stalls, func() { hang(a, w, r) }}
	}
	api.fail("list "+resource, func(a *apiServer, w http.ResponseWriter, r *http.Request) {
		_, gv, _ := parseRequest(r)
		a.list(slow(a, w, r), r, gv, resource)
	})
	api.fail("watch "+resource, func(a *apiServer, w http.ResponseWriter, r *http.Request) {
		switch first := r.URL.Query().Get("sendInitialEvents") == "true"; {
		case first && !streams:
			answer(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden for watch")(a, w, r)
		case first:
			a.watch(slow(a, w, r), r, resource)
		default:
			a.watch(w, r, resource)
		}
	})
}

// TestFirstListsAreBoundedByProgress: what is read at first may take longer than a request, and than connecting, in
// all; but a link that stalls in the middle is given up, each time.
func TestFirstListsAreBoundedByProgress(t *testing.T) {
	for resource, ways := range map[string][]bool{"workloads": {true, false}, "jobs": {true}} {
		for _, streams := range ways {
			for _, stalls := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s streams=%v stalls=%v", resource, streams, stalls), func(t *testing.T) {
					firstLists(t, resource, streams, stalls)
				})
			}
		}
	}
}

func firstLists(t *testing.T, resource string, streams, stalls bool) {
	g := NewWithT(t)
	api := newAPIServer(t)
	for i := range 40 { // 8 kB: three times as long as a request may take
		api.put("workloads", "kueue.x-k8s.io/v1beta2", "Workload", fmt.Sprintf("w%d", i), "me")
		api.put("jobs", "batch/v1", "Job", fmt.Sprintf("j%d", i), "me")
	}
	after := 0
	if stalls {
		after = 4000
	}
	slowLists(api, resource, streams, after)
	f, _ := startFleet(t, func(o *Options) {
		o.RequestTimeout, o.SyncTimeout = 250*time.Millisecond, 250*time.Millisecond
		o.ProbeTimeout, o.KindGrace = 5*time.Second, 10*time.Millisecond
	})
	f.Set("w1", api.config("good"), "1")
	if resource != "jobs" && stalls {
		g.Eventually(func() string { return f.Status("w1").Message }, patience).Should(And(ContainSubstring("no answer within"), ContainSubstring("while reading its Workloads")))
		g.Expect(f.Status("w1").Usable()).To(BeFalse())
		return
	}
	conn := mustConn(g, f, "w1")
	why := func() string { _, why := conn.Serves(jobKind); return why }
	if stalls {
		g.Eventually(why, patience).Should(ContainSubstring("no answer within"))
		return
	}
	g.Eventually(why, patience).Should(BeEmpty())
	g.Expect(jobNames(conn.Reader())()).To(HaveLen(40))
}
