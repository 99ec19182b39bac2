package fleet

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestPathLoaderLoads(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "kubeconfigs")
	write(t, filepath.Join(dir, "plain"), "plain")
	write(t, filepath.Join(dir, "..2026/kubeconfig"), "mounted")
	symlink(t, "..2026", filepath.Join(dir, "..data"))
	symlink(t, "..data/kubeconfig", filepath.Join(dir, "kubeconfig"))
	symlink(t, filepath.Join(dir, "plain"), filepath.Join(dir, "absolute"))
	write(t, filepath.Join(base, "outside"), "secret")
	write(t, filepath.Join(base, "kubeconfigs-other/file"), "secret")
	symlink(t, "../outside", filepath.Join(dir, "leak"))
	symlink(t, base, filepath.Join(dir, "up"))

	loader := NewPathLoader(dir, 0, logr.Discard(), func() {})
	for name, test := range map[string]struct{ path, want, fails string }{
		"plain":                     {path: dir + "/plain", want: "plain"},
		"a mounted Secret":          {path: dir + "/kubeconfig", want: "mounted"},
		"absolute link inside":      {path: dir + "/absolute", want: "plain"},
		"empty":                     {path: "", fails: "kubeconfig path must not be empty"},
		"relative":                  {path: "plain", fails: "path must be absolute"},
		"dots":                      {path: dir + "/../outside", fails: "kubeconfig path is not under the allowed prefix"},
		"dots that come back":       {path: dir + "/x/../plain", fails: "kubeconfig path is not under the allowed prefix"},
		"outside":                   {path: base + "/outside", fails: "kubeconfig path is not under the allowed prefix"},
		"a folder with a like name": {path: base + "/kubeconfigs-other/file", fails: "kubeconfig path is not under the allowed prefix"},
		"link outside":              {path: dir + "/leak", fails: "kubeconfig path is not under the allowed prefix"},
		"folder link outside":       {path: dir + "/up/outside", fails: "kubeconfig path is not under the allowed prefix"},
		"missing":                   {path: dir + "/missing", fails: "no such file"},
		"a folder":                  {path: dir, fails: "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data, err := loader.Load(test.path)
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				g.Expect(data).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data)).To(Equal(test.want))
		})
	}
}

func TestPathLoaderTellsOfChanges(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "kubeconfigs")
	file := filepath.Join(dir, "worker1", "kubeconfig")
	write(t, filepath.Join(dir, "other"), "")
	var changes atomic.Int32
	loader := NewPathLoader(dir, time.Hour, logr.Discard(), func() { changes.Add(1) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- loader.Start(ctx) }()
	g.Eventually(changes.Load, "10s").Should(BeNumerically(">=", 1), "it tells once at the start")

	_, err := loader.Load(file)
	g.Expect(err).To(HaveOccurred())
	before := changes.Load()
	g.Expect(os.Mkdir(filepath.Dir(file), 0o755)).To(Succeed())
	g.Eventually(changes.Load, "10s").Should(BeNumerically(">", before), "the folder appeared")

	_, err = loader.Load(file)
	g.Expect(err).To(HaveOccurred())
	before = changes.Load()
	write(t, file, "first")
	g.Eventually(changes.Load, "10s").Should(BeNumerically(">", before), "the file appeared")

	before = changes.Load()
	write(t, file+".new", "second")
	g.Expect(os.Rename(file+".new", file)).To(Succeed())
	g.Eventually(func() string { data, _ := loader.Load(file); return string(data) }, "10s").Should(Equal("second"))
	g.Eventually(changes.Load, "10s").Should(BeNumerically(">", before), "the file was replaced")

	stop()
	g.Eventually(ended, "10s").Should(Receive(BeNil()))
}

func TestPathLoaderChecksFromTimeToTime(t *testing.T) {
	g := NewWithT(t)
	var changes atomic.Int32
	loader := NewPathLoader(filepath.Join(t.TempDir(), "missing"), 20*time.Millisecond, logr.Discard(), func() { changes.Add(1) })
	go func() { _ = loader.Start(t.Context()) }()
	g.Eventually(changes.Load, "10s").Should(BeNumerically(">=", 3))
}
