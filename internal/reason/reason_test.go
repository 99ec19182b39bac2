package reason_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ferry.dev/ferry/internal/reason"
)

// TestPublicWords pins the messages that dashboards and scripts of MultiKueue's users match on.
func TestPublicWords(t *testing.T) {
	for got, want := range map[string]string{
		reason.Event:                          "MultiKueue",
		reason.NoOwner:                        "No multikueue adapter found",
		reason.Admitted("w1"):                 `The workload was admitted on "w1"`,
		reason.NoAdapter("g/v1, Kind=K"):      `No multikueue adapter found for owner kind "g/v1, Kind=K"`,
		reason.NotManaged("x"):                "The owner is not managed by Kueue: x. Set the field, or, where it cannot be changed, as in a batch Job, delete the job and create it anew",
		reason.EvictedOnWorker("w1", ""):      `Workload evicted on worker cluster: "w1", resetting for re-admission`,
		reason.EvictedOnWorker("w1", "quota"): `Workload evicted on worker cluster: "w1", resetting for re-admission: quota`,
		reason.WaitsThere("Pending", "couldn't assign flavors to pod set main: insufficient unused quota"):                         "waits for quota",
		reason.WaitsThere("Pending", `couldn't assign flavors to pod set main: topology "x" doesn't allow to fit any of 2 pod(s)`): "no place in its topology",
		reason.WaitsThere("Pending", `couldn't assign flavors to pod set main: topology "x" allows to fit only 1 out of 2 pod(s)`): "no place in its topology",
		reason.WaitsThere("ExceedsMaxQuota", "insufficient quota"):                                                                 "asks for more than its queue can ever have",
		reason.NobodyFits(""):         "No worker can take the job: none is configured",
		reason.NobodyFits("w1: down"): "No worker can take the job: w1: down",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFit(t *testing.T) {
	for text, limit := range map[string]int{reason.Fit(strings.Repeat("ü", 40*1024)): 32 * 1024, reason.Brief(strings.Repeat("ü", 1000)): 300} {
		if len(text) > limit || len(text) < limit-4 || !utf8.ValidString(text) || !strings.HasSuffix(text, "...") {
			t.Errorf("a long text has %d bytes of %d, valid %v", len(text), limit, utf8.ValidString(text))
		}
	}
	if reason.Fit("short") != "short" {
		t.Error("a short text was changed")
	}
}
