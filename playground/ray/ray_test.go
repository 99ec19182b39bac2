package ray

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// asking serves at a time that the test moves on, and asks through it as an HTTP proxy, as KubeRay does.
func asking(t *testing.T) (ask func(method, url, body string) (int, map[string]any), sleep func(time.Duration)) {
	t.Helper()
	g := NewWithT(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := newServer(2*time.Second, func() time.Time { return now })
	proxy := httptest.NewServer(s.http.Handler)
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	g.Expect(err).NotTo(HaveOccurred())
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at)}}
	ask = func(method, url, body string) (int, map[string]any) {
		request, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		response, err := client.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		var got map[string]any
		_ = json.Unmarshal(data, &got) // not every answer is an object
		return response.StatusCode, got
	}
	return ask, func(d time.Duration) { now = now.Add(d) }
}

const (
	one   = "http://one-head-svc.team.svc.cluster.local:8265"
	other = "http://other-head-svc.team.svc.cluster.local:8265"
)

func TestAJobRunsAndEnds(t *testing.T) {
	for id, want := range map[string]struct {
		after time.Duration
		end   string
	}{
		"train-1":           {2 * time.Second, "SUCCEEDED"},
		"run-for-5s-train":  {5 * time.Second, "SUCCEEDED"},
		"fail-train":        {2 * time.Second, "FAILED"},
		"fail-run-for-1m1s": {61 * time.Second, "FAILED"},
		"run-for-ever":      {2 * time.Second, "SUCCEEDED"},
	} {
		t.Run(id, func(t *testing.T) {
			g := NewWithT(t)
			ask, sleep := asking(t)
			state := func() any {
				_, job := ask("GET", one+"/api/jobs/"+id, "")
				return job["status"]
			}
			g.Expect(state()).To(Equal("RUNNING"))
			sleep(want.after - time.Millisecond)
			g.Expect(state()).To(Equal("RUNNING"))
			sleep(time.Millisecond)
			g.Expect(state()).To(Equal(want.end))
		})
	}
}

func TestSubmitAndStop(t *testing.T) {
	g := NewWithT(t)
	ask, _ := asking(t)
	_, got := ask("POST", one+"/api/jobs/", `{"entrypoint":"python a.py","submission_id":"a"}`)
	g.Expect(got).To(HaveKeyWithValue("job_id", "a"))
	code, _ := ask("POST", one+"/api/jobs/", `{"submission_id":"a"}`)
	g.Expect(code).To(Equal(http.StatusInternalServerError), "it is there already")
	code, _ = ask("POST", one+"/api/jobs/", `{`)
	g.Expect(code).To(Equal(http.StatusBadRequest))

	code, _ = ask("POST", other+"/api/jobs/a/stop", "")
	g.Expect(code).To(Equal(http.StatusNotFound), "heads know nothing of each other")
	_, got = ask("POST", one+"/api/jobs/a/stop", "")
	g.Expect(got).To(HaveKeyWithValue("stopped", true))
	_, got = ask("GET", one+"/api/jobs/a", "")
	g.Expect(got).To(And(HaveKeyWithValue("status", "STOPPED"), HaveKeyWithValue("entrypoint", "python a.py")))
	_, got = ask("POST", one+"/api/jobs/a/stop", "")
	g.Expect(got).To(HaveKeyWithValue("stopped", false), "it has ended")
}

func TestServeApplications(t *testing.T) {
	g := NewWithT(t)
	ask, _ := asking(t)
	applications := func(head string) any {
		_, got := ask("GET", head+"/api/serve/applications/?api_type=declarative", "")
		return got["applications"]
	}
	g.Expect(applications(one)).To(BeEmpty())
	code, _ := ask("PUT", one+"/api/serve/applications/", `{"applications":[{"name":"fruit","deployments":[{"name":"Mango"}]},{}]}`)
	g.Expect(code).To(Equal(http.StatusOK))
	g.Expect(applications(one)).To(And(
		HaveKeyWithValue("fruit", HaveKeyWithValue("deployments", HaveKeyWithValue("Mango", HaveKeyWithValue("status", "HEALTHY")))),
		HaveKeyWithValue("default", HaveKeyWithValue("status", "RUNNING"))))
	g.Expect(applications(other)).To(BeEmpty())

	code, _ = ask("GET", "http://10.0.0.7:8000/-/healthz", "")
	g.Expect(code).To(Equal(http.StatusOK))
}

func TestJobsEndWhenTold(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := newServer(time.Hour, func() time.Time { return now })
	early := job{began: now}
	now = now.Add(time.Minute)
	g.Expect(s.tell("train", early).Status).To(Equal(running))
	s.EndJobs()
	late := job{began: now}
	now = now.Add(time.Second)
	g.Expect(s.tell("train", early)).To(And(HaveField("Status", succeeded), HaveField("End", now.Add(-time.Second).UnixMilli())))
	g.Expect(s.tell("fail-train", early).Status).To(Equal(failed))
	g.Expect(s.tell("train", late).Status).To(Equal(running), "one that began later")
}
