package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// supervisorEnv turns the test binary into a supervisor of one child, to be killed by a test.
const supervisorEnv = "PROCESS_TEST_SUPERVISOR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(supervisorEnv); dir != "" {
		p := New(shell(dir, "exec sleep 300"))
		if err := p.Start(); err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

func shell(dir, script string) Spec {
	return Spec{Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(dir, "log"), Grace: 5 * time.Second}
}

func start(t *testing.T, script string) *Process {
	t.Helper()
	p := New(shell(t.TempDir(), script))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// kernelState is the letter in /proc/<pid>/stat: S sleeps, T is stopped; "" is gone (or a zombie).
func kernelState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	if after[:1] == "Z" {
		return ""
	}
	return after[:1]
}

func TestStopLetsTheChildEndByItself(t *testing.T) {
	g := NewWithT(t)
	p := start(t, "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.05; done")
	g.Eventually(func() string { return p.Tail(1) }).Should(Equal("up"))
	g.Expect(p.Stop()).To(Succeed())
	g.Expect(p.State()).To(Equal(Stopped))
	g.Expect(p.Tail(1)).To(Equal("bye"))
	g.Expect(p.Failure()).To(Succeed(), "an end that was asked for is no failure")
}

func TestStopKillsADeafChild(t *testing.T) {
	g := NewWithT(t)
	spec := shell(t.TempDir(), "trap '' TERM; echo up; while true; do sleep 0.05; done")
	spec.Grace = 200 * time.Millisecond
	p := New(spec)
	g.Expect(p.Start()).To(Succeed())
	g.Eventually(func() string { return p.Tail(1) }).Should(Equal("up"))
	pid := p.PID()
	g.Expect(p.Stop()).To(Succeed())
	g.Expect(kernelState(pid)).To(BeEmpty())
}

func TestAnEndNobodyAskedForIsAFailureThatShowsTheLog(t *testing.T) {
	g := NewWithT(t)
	p := start(t, "echo the disk is full; exit 3")
	g.Eventually(p.Done()).Should(BeClosed())
	g.Expect(p.State()).To(Equal(Exited))
	g.Expect(p.Failure()).To(MatchError(And(ContainSubstring("exit status 3"), ContainSubstring("the disk is full"))))
	g.Expect(p.Restart()).To(Succeed(), "it can be started again")
}

func TestPauseFreezesAndResumeThaws(t *testing.T) {
	g := NewWithT(t)
	p := start(t, "exec sleep 300")
	g.Expect(p.Resume()).NotTo(Succeed(), "it is not paused")
	g.Expect(p.Pause()).To(Succeed())
	g.Eventually(func() string { return kernelState(p.PID()) }).Should(Equal("T"))
	g.Expect(p.State()).To(Equal(Paused))
	g.Expect(p.Resume()).To(Succeed())
	g.Eventually(func() string { return kernelState(p.PID()) }).Should(Equal("S"))
}

func TestAPausedChildCanBeStopped(t *testing.T) {
	g := NewWithT(t)
	p := start(t, "trap 'echo bye; exit 0' TERM; echo up; while true; do sleep 0.05; done")
	g.Eventually(func() string { return p.Tail(1) }).Should(Equal("up"))
	g.Expect(p.Pause()).To(Succeed())
	g.Expect(p.Stop()).To(Succeed())
	g.Expect(p.Tail(1)).To(Equal("bye"), "it was woken to hear SIGTERM")
}

func TestRestartGivesANewChildAndKeepsTheLog(t *testing.T) {
	g := NewWithT(t)
	p := start(t, "echo up; exec sleep 300")
	g.Eventually(func() string { return p.Tail(9) }).Should(Equal("up"))
	old := p.PID()
	g.Expect(p.Start()).NotTo(Succeed(), "it runs already")
	g.Expect(p.Restart()).To(Succeed())
	g.Expect(p.PID()).NotTo(Equal(old))
	g.Eventually(func() string { return p.Tail(9) }).Should(Equal("up\nup"))
}

func TestAChildHasAProcessGroupOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	p := start(t, "exec sleep 300")
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	g.Expect(err).NotTo(HaveOccurred())
	_, after, _ := strings.Cut(string(stat), ") ")
	g.Expect(strings.Fields(after)[2]).To(Equal(strconv.Itoa(p.PID())), "else Ctrl-C at the terminal hits it")
}

func TestAKilledSupervisorTakesItsChildAlong(t *testing.T) {
	g := NewWithT(t)
	supervisor := exec.Command(os.Args[0])
	supervisor.Env = append(os.Environ(), supervisorEnv+"="+t.TempDir())
	out, err := supervisor.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(supervisor.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	child, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kernelState(child)).NotTo(BeEmpty())

	g.Expect(supervisor.Process.Kill()).To(Succeed())
	g.Eventually(func() string { return kernelState(child) }).WithTimeout(5 * time.Second).Should(BeEmpty())
	g.Expect(supervisor.Wait()).NotTo(Succeed())
}

// TestChildrenDoNotInheritLocks: `flock FILE playground up` must not hold FILE for as long as the clusters live.
func TestChildrenDoNotInheritLocks(t *testing.T) {
	for name, start := range map[string]func(*exec.Cmd) error{"dies with us": Spawn, "outlives us": Detach} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "lock")
			lock, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR, 0o600) // unlike os.Open: for children too
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(syscall.Flock(lock, syscall.LOCK_EX)).To(Succeed())
			child := exec.Command("sleep", "300")
			g.Expect(start(child)).To(Succeed())
			defer func() {
				g.Expect(child.Process.Kill()).To(Succeed())
				_ = child.Wait()
			}()
			g.Expect(syscall.Close(lock)).To(Succeed())

			other, err := os.Open(path)
			g.Expect(err).NotTo(HaveOccurred())
			defer other.Close()
			g.Expect(syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)).To(Succeed(), "the child holds the lock")
		})
	}
}

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		text  string
		lines int
		want  string
	}{
		{"", 3, ""},
		{"a\nb\nc\n", 2, "b\nc"},
		{"a\nb", 5, "a\nb"},
		{"a\nb\n\n", 1, "b"},
	} {
		if got := string(lastLines([]byte(c.text), c.lines)); got != c.want {
			t.Errorf("last %d lines of %q: %q, want %q", c.lines, c.text, got, c.want)
		}
	}
}
