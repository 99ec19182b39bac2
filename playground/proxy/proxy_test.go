package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// echo is a server that answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func through(t *testing.T) *Proxy {
	t.Helper()
	p, err := New("127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

type caller struct {
	net.Conn
	in *bufio.Reader
}

func call(t *testing.T, p *Proxy) *caller {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &caller{Conn: c, in: bufio.NewReader(c)}
}

// ask sends a line and waits for the answer.
func (c *caller) ask(line string, within time.Duration) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.hear(within)
}

func (c *caller) hear(within time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}

const (
	soon  = 5 * time.Second        // for what must happen
	never = 150 * time.Millisecond // for what must not
)

func TestPass(t *testing.T) {
	g := NewWithT(t)
	c := call(t, through(t))
	g.Expect(c.ask("one", soon)).To(Equal("one\n"))
	g.Expect(c.ask("two", soon)).To(Equal("two\n"))
}

func TestCutClosesAndRefusesAndPassHeals(t *testing.T) {
	g := NewWithT(t)
	p := through(t)
	c := call(t, p)
	g.Expect(c.ask("one", soon)).To(Equal("one\n"))
	g.Expect(p.Cut()).To(Succeed())
	_, err := c.hear(soon)
	g.Expect(err).To(HaveOccurred())
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeFalse(), "the connection is closed, not silent")
	_, err = net.Dial("tcp", p.Addr())
	g.Expect(errors.Is(err, syscall.ECONNREFUSED)).To(BeTrue(), "got %v", err)

	g.Expect(p.Pass()).To(Succeed())
	g.Expect(call(t, p).ask("two", soon)).To(Equal("two\n"))
}

func TestBlackHoleFreezesOldAndNewConnectionsAndPassThawsThem(t *testing.T) {
	g := NewWithT(t)
	p := through(t)
	old := call(t, p)
	g.Expect(old.ask("one", soon)).To(Equal("one\n"))
	g.Expect(p.BlackHole()).To(Succeed())
	_, err := old.ask("two", never)
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeTrue(), "got %v", err)
	fresh := call(t, p)
	_, err = fresh.ask("three", never)
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeTrue(), "got %v", err)

	g.Expect(p.Pass()).To(Succeed())
	g.Expect(old.hear(soon)).To(Equal("two\n"))
	g.Expect(fresh.hear(soon)).To(Equal("three\n"))
}

func TestCutAfterBlackHoleClosesWhatWasFrozen(t *testing.T) {
	g := NewWithT(t)
	p := through(t)
	g.Expect(p.BlackHole()).To(Succeed())
	c := call(t, p)
	_, err := c.ask("one", never)
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeTrue())
	g.Expect(p.Cut()).To(Succeed())
	_, err = c.hear(soon)
	g.Expect(err).To(HaveOccurred())
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeFalse())
}

func TestDelayHoldsBackBothDirectionsAndKeepsThroughput(t *testing.T) {
	g := NewWithT(t)
	p := through(t)
	g.Expect(p.Delay(100 * time.Millisecond)).To(Succeed())
	c := call(t, p)
	begin := time.Now()
	g.Expect(c.ask("one", soon)).To(Equal("one\n"))
	g.Expect(time.Since(begin)).To(BeNumerically(">=", 200*time.Millisecond))

	// 4 MiB are far more chunks than fit into a delay one after the other.
	const size = 4 << 20
	begin = time.Now()
	go func() { _, _ = c.Write(make([]byte, size)) }()
	g.Expect(c.SetReadDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	n, err := io.CopyN(io.Discard, c.in, size)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n).To(BeEquivalentTo(size))
	g.Expect(time.Since(begin)).To(BeNumerically("<", 6*time.Second))
}

func TestAnUnreachableTargetClosesTheConnection(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	p, err := New("127.0.0.1:0", l.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(p.Close)
	_, err = call(t, p).hear(soon)
	g.Expect(err).To(HaveOccurred())
	g.Expect(errors.Is(err, os.ErrDeadlineExceeded)).To(BeFalse())
}

func TestBadModes(t *testing.T) {
	g := NewWithT(t)
	p := through(t)
	g.Expect(p.Set("slow", 0)).To(MatchError(ContainSubstring(`no mode "slow"`)))
	g.Expect(p.Delay(0)).To(MatchError(ContainSubstring("above 0")))
	mode, _ := p.Mode()
	g.Expect(mode).To(Equal(Pass))
	p.Close()
	g.Expect(p.Pass()).To(MatchError(ContainSubstring("closed")))
}
