package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"ferry.dev/ferry/playground"
)

// serving runs the daemon's API, without a playground, in a folder whose path is too long for a unix socket.
func serving(t *testing.T) (*server, *Client) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{progress: newProgress(), cancel: cancel, finished: make(chan struct{})}
	go func() {
		<-ctx.Done()
		close(s.finished)
	}()
	api := &http.Server{Handler: s.routes()}
	go func() { _ = api.Serve(socket) }()
	t.Cleanup(func() {
		cancel()
		_ = api.Close()
	})
	return s, clientFor("test", dir)
}

func TestFollowersGetAllLinesAndTheOutcome(t *testing.T) {
	for name, failure := range map[string]error{"ready": nil, "failed": errors.New("w1/etcd ended by itself")} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, c := serving(t)
			fmt.Fprint(s.progress, "early\nhal")
			var lines []string
			outcome := make(chan error, 1)
			seen := make(chan struct{}, 10)
			go func() {
				outcome <- c.follow(context.Background(), func(line string) {
					lines = append(lines, line)
					seen <- struct{}{}
				})
			}()
			g.Eventually(seen).Should(Receive())
			fmt.Fprint(s.progress, "f a line\n")
			s.progress.end(failure)
			var got error
			g.Eventually(outcome).Should(Receive(&got))
			if failure == nil {
				g.Expect(got).NotTo(HaveOccurred())
			} else {
				g.Expect(got).To(MatchError(failure.Error()))
			}
			g.Expect(lines).To(Equal([]string{"early", "half a line"}))
		})
	}
}

func TestAStartEndsWithItsFollower(t *testing.T) {
	g := NewWithT(t)
	s, c := serving(t)
	fmt.Fprintln(s.progress, "early")
	ctx, die := context.WithCancel(t.Context())
	g.Expect(c.follow(ctx, func(string) { die() })).To(MatchError(context.Canceled))
	g.Eventually(s.finished).Should(BeClosed())
}

func TestWhatNeedsClustersWaitsForTheStart(t *testing.T) {
	g := NewWithT(t)
	_, c := serving(t)
	status, err := c.Status(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.Ready).To(BeFalse())
	g.Expect(status.PID).To(Equal(os.Getpid()))
	g.Expect(c.Component(t.Context(), "ferry", "stop")).To(MatchError(ContainSubstring("still starting")))
	g.Expect(c.InstallQueues(t.Context(), playground.QueueOptions{})).To(MatchError(ContainSubstring("still starting")))
}

func TestWithoutADaemon(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	c := clientFor("test", dir)
	_, err := c.Status(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("does not run")))

	// A crash leaves a socket that nobody serves, and a process id that may be a stranger's by now.
	l, err := listen(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, pidFile), []byte(fmt.Sprint(os.Getppid())), 0o600)).To(Succeed())
	_, err = c.Status(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("does not run")))
	g.Expect(c.Down()).To(Succeed())
	g.Expect(dir).NotTo(BeADirectory())
	g.Expect(c.Down()).To(Succeed(), "there is nothing left")
}
