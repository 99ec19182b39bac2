package e2e_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/test/fixtures"
)

func TestWorkerWithoutTheQueueIsSkippedAndNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, fixtures.CPUOf("w2", "1"))
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fixtures.Queue}}
	s.Expect(on("w1").Delete(s.ctx, queue.DeepCopy())).To(Succeed())
	s.submit("large", fixtures.CPU("2"), fixtures.RunsFor(time.Second))
	s.awaitMessage("large", "Offered to w2", `skipped w1: no LocalQueue "`+s.namespace+`/queue"`)
	queue.Spec.ClusterQueue = kueue.ClusterQueueReference(s.clusterQueue("w1"))
	s.Expect(on("w1").Create(s.ctx, queue)).To(Succeed())
	s.awaitComplete("large")
	s.Expect(s.creations(s, "large")).To(Equal(map[string]int{"w1": 1}))
}

func TestFerryRefusesABadConfigWithAllErrors(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	writeFile(t, bad, `apiVersion: config.ferry.dev/v1alpha1
kind: Configuration
multiKueue:
  workerLostTimeout: -1s
workers:
  failureThreshold: 0
  kubeConfigPathPrefix: not/absolute
`)
	unknown := filepath.Join(t.TempDir(), "unknown.yaml")
	writeFile(t, unknown, "apiVersion: config.ferry.dev/v1alpha1\nkind: Configuration\nmultiKueu: {}\nworkers: {probeIntervall: 1s}\n")
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	writeFile(t, empty, "")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"values out of range": {[]string{"--config", bad}, []string{bad, "multiKueue.workerLostTimeout", "workers.failureThreshold", "workers.kubeConfigPathPrefix"}},
		"unknown fields":      {[]string{"--config", unknown}, []string{unknown, "multiKueu", "workers.probeIntervall"}},
		"empty file":          {[]string{"--config", empty}, []string{"empty", "config.ferry.dev/v1alpha1"}},
		"no such file":        {[]string{"--config", empty + "x"}, []string{empty + "x", "no such file"}},
		"empty --config":      {[]string{"--config", ""}, []string{"--config is empty"}},
		"unknown flag":        {[]string{"--confg", bad}, []string{"unknown flag: --confg"}},
		"an argument":         {[]string{"run"}, []string{"run"}},
		"no kubeconfig":       {[]string{"--kubeconfig", empty + "y"}, []string{"no access to the manager cluster", empty + "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			code, output := runFerry(t, c.args...)
			g.Expect(code).To(Equal(1), output)
			for _, part := range c.want {
				g.Expect(output).To(ContainSubstring(part))
			}
		})
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runFerry runs the binary that the playground runs, to its end.
func runFerry(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(fleet.Dir()), "bin", "ferry"), args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestMetricsAndReadiness(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.submit("train", fixtures.RunsFor(time.Second))
	s.awaitComplete("train")
	metrics := s.fetch(fleet.FerryMetrics())
	s.Expect(metrics).To(MatchRegexp(`multikueue_workloads_dispatched_total\{cluster="w1",cluster_queue="` + s.namespace + `",replica_role="[a-z]+"\} 1`))
	s.Expect(metrics).To(MatchRegexp(`multikueue_workloads_dispatched_total\{cluster="w2",cluster_queue="` + s.namespace + `",replica_role="[a-z]+"\} 1`))
	s.Expect(metrics).To(MatchRegexp(`multikueue_workloads_admitted_total\{cluster="w[12]",cluster_queue="` + s.namespace + `",replica_role="[a-z]+"\} 1`))
	s.Expect(s.fetch("http://" + fleet.Ferry().HealthAddress + "/readyz")).To(Equal("ok"))
	s.Expect(s.fetch("http://" + fleet.Ferry().HealthAddress + "/healthz")).To(Equal("ok"))
}

// fetch gets a page of Ferry's that must be there.
func (s *site) fetch(url string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, url, nil)
	s.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	s.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(response.StatusCode).To(Equal(http.StatusOK))
	return string(body)
}
