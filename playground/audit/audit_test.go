package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func line(id, stage, at, user, verb, resource, subresource, name string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":%q,`+
		`"requestURI":"/x?fieldManager=m&force=true","verb":%q,"user":{"username":%q,"groups":["g"]},"sourceIPs":["127.0.0.1"],"userAgent":"u",`+
		`"objectRef":{"resource":%q,"namespace":"default","name":%q,"apiGroup":"batch","subresource":%q},`+
		`"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:%s.000001Z",`+
		`"stageTimestamp":"2026-01-02T03:04:59.000000Z"}`+"\n", id, stage, verb, user, resource, name, subresource, at)
}

func write(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCountRequests(t *testing.T) {
	g := NewWithT(t)
	file := write(t,
		line("1", "ResponseComplete", "01", "ferry", "get", "jobs", "", "before"),
		line("2", "ResponseComplete", "10", "ferry", "patch", "jobs", "status", "a-1"),
		line("3", "ResponseComplete", "11", "ferry", "patch", "jobs", "status", "a-2"),
		line("4", "ResponseStarted", "12", "ferry", "watch", "jobs", "", ""),
		line("5", "ResponseComplete", "13", "kueue", "create", "workloads", "", "w"),
		line("4", "ResponseComplete", "12", "ferry", "watch", "jobs", "", ""),
		`{"half": "writ`,
	)
	since := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)

	counts, err := CountRequests(file, since, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(counts).To(Equal(Counts{
		{"ferry", "patch", "jobs", "status"}: 2,
		{"ferry", "watch", "jobs", ""}:       1,
		{"kueue", "create", "workloads", ""}: 1,
	}))
	g.Expect(counts.Total()).To(Equal(4))
	g.Expect(counts.Keys()).To(Equal([]Key{
		{"ferry", "watch", "jobs", ""}, {"ferry", "patch", "jobs", "status"}, {"kueue", "create", "workloads", ""},
	}))

	one, err := CountRequests(file, since, func(r Request) bool { return r.Namespace == "default" && r.Name == "a-1" })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one.Total()).To(Equal(1))
}

func TestEachTellsTheWholeRequest(t *testing.T) {
	g := NewWithT(t)
	var got []Request
	file := write(t, line("2", "ResponseComplete", "10", "ferry", "patch", "jobs", "status", "a-1"))
	g.Expect(Each(file, time.Time{}, func(r Request) { got = append(got, r) })).To(Succeed())
	g.Expect(got).To(Equal([]Request{{
		At:   time.Date(2026, 1, 2, 3, 4, 10, 1000, time.UTC),
		Done: time.Date(2026, 1, 2, 3, 4, 59, 0, time.UTC), FieldManager: "m",
		User: "ferry", UserAgent: "u", Verb: "patch",
		Group: "batch", Resource: "jobs", Subresource: "status", Namespace: "default", Name: "a-1", Code: 200,
	}}))
}

func TestBadLogs(t *testing.T) {
	g := NewWithT(t)
	_, err := CountRequests(filepath.Join(t.TempDir(), "none"), time.Time{}, nil)
	g.Expect(err).To(MatchError(os.ErrNotExist))
	_, err = CountRequests(write(t, "not json\n"), time.Time{}, nil)
	g.Expect(err).To(MatchError(ContainSubstring("line 1")))
}
