package fleet

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// TestARotatedTokenKeepsTheConnection: caches and watches go on, nothing is read anew, and what the old token may
// not do any more is done with the new one.
func TestARotatedTokenKeepsTheConnection(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	api.put("jobs", "batch/v1", "Job", "ours", "me")
	f, told := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	g.Eventually(api.watching, patience).Should(Equal(4), "Workloads, LocalQueues, Jobs and their names")
	read, states := api.count("list ", "watch "), len(told.allStates())

	api.allow("good", "renewed")
	f.Set("w1", api.config("renewed"), "2")
	g.Eventually(func() int { return api.count("probe workloads as renewed") }, patience).Should(BeNumerically(">", 0), "the new one is tried at once")
	now, _ := f.Conn("w1")
	g.Expect(now).To(BeIdenticalTo(conn))
	g.Expect(api.count("list ", "watch ")).To(Equal(read), "requests to read anything anew")
	g.Expect(told.allStates()).To(HaveLen(states), "it is no news")

	api.allow("renewed")
	api.fail("nothing", nil) // ends the watches
	g.Eventually(func() int { return api.count("watch jobs as renewed") }, patience).Should(BeNumerically(">", 0))
	api.put("jobs", "batch/v1", "Job", "more", "me")
	g.Eventually(jobNames(conn.Reader()), patience).Should(Equal([]string{"more", "ours"}))
	g.Expect(api.count("list ")).To(BeZero(), "a watch goes on where it was")
	g.Expect(f.Status("w1").Reach).To(Equal(Connected))
}

// TestARotatedTokenThatIsRefused: the connection is lost, so the old token is not used either.
func TestARotatedTokenThatIsRefused(t *testing.T) {
	g := NewWithT(t)
	api := newAPIServer(t)
	f, _ := startFleet(t, func(*Options) {})
	f.Set("w1", api.config("good"), "1")
	conn := mustConn(g, f, "w1")
	f.Set("w1", api.config("bad"), "2")
	g.Eventually(reach(f, "w1"), patience).Should(Equal(Lost))
	g.Expect(f.Status("w1").Message).To(ContainSubstring("refused the credentials"))
	g.Expect(jobNames(conn.Reader())()).To(ConsistOf(ContainSubstring("closed")))
	before := api.count("as good")
	g.Consistently(func() int { return api.count("as good") }, "300ms").Should(Equal(before))
	f.Set("w1", api.config("good"), "1")
	mustConn(g, f, "w1")
}

// TestSamePlace: who logs in is not where.
func TestSamePlace(t *testing.T) {
	parse := func(change ...string) *rest.Config {
		cfg, _, _, err := ParseKubeConfig([]byte(strings.NewReplacer(change...).Replace(rotatedConfig)), false)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for name, test := range map[string]struct {
		change []string
		same   bool
	}{
		"nothing":       {nil, true},
		"token":         {[]string{"token: a", "token: b"}, true},
		"certificate":   {[]string{"token: a", "client-certificate-data: YQ==, client-key-data: YQ=="}, true},
		"impersonation": {[]string{"token: a", "token: a, as: b"}, true},
		"server":        {[]string{"https://w1", "https://w2"}, false},
		"authority":     {[]string{"authority-data: YQ==", "authority-data: Yg=="}, false},
		"name":          {[]string{"server: ", "tls-server-name: w3, server: "}, false},
		"proxy":         {[]string{"server: ", "proxy-url: 'http://p', server: "}, false},
	} {
		if got := samePlace(parse(), parse(test.change...)); got != test.same {
			t.Errorf("%s: same place is %v, want %v", name, got, test.same)
		}
	}
}

const rotatedConfig = `apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://w1:6443", certificate-authority-data: YQ==}}]
users: [{name: u, user: {token: a}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`

// note counts a request by what it asks for and who asks.
func (a *apiServer) noteLocked(verb, resource string, r *http.Request) {
	if a.asked == nil {
		a.asked = map[string]int{}
	}
	a.asked[verb+" "+resource+" as "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]++
}

// count is how many requests there were with one of the words in what they asked for.
func (a *apiServer) count(words ...string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for what, times := range a.asked {
		for _, word := range words {
			if strings.Contains(what, word) {
				n += times
				break
			}
		}
	}
	return n
}

func (a *apiServer) watching() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watchers)
}
