package lane

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
)

// stuck hangs on all that is asked about JobSets, and tells which Jobs it was asked about.
type stuck struct {
	client.Reader
	hang  chan struct{}
	asked chan string
}

func (s *stuck) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj.GetObjectKind().GroupVersionKind().Kind {
	case "JobSet":
		<-s.hang
	case "Job":
		s.asked <- key.Name
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (s *stuck) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

type stuckFleet struct{ conn fleet.Conn }

func (f stuckFleet) Workers() []string              { return nil }
func (f stuckFleet) Status(string) fleet.Status     { return fleet.Status{Reach: fleet.Connected} }
func (f stuckFleet) Conn(string) (fleet.Conn, bool) { return f.conn, true }

type stuckConn struct{ fleet.Conn }

func (stuckConn) Client() client.Client { return nil }

// TestAKindThatHangsHoldsUpNoOther: each kind has a queue of its own in a worker's lane.
func TestAKindThatHangsHoldsUpNoOther(t *testing.T) {
	g := NewWithT(t)
	s := &stuck{hang: make(chan struct{}), asked: make(chan string, 10)}
	lanes := &Lanes{Observer: &observe.Observer{
		Manager: s, Fleet: stuckFleet{stuckConn{}}, Kinds: kinds.NewTable([]string{"batch/job", "jobset.x-k8s.io/jobset"}), Memory: observe.NewMemory(), Clock: clock.RealClock{},
	}, Poke: func(kinds.Ref) {}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = lanes.Start(ctx) }()
	t.Cleanup(func() { close(s.hang); stop(); <-ended })
	lanes.Open("w1")
	for i := range 4 * concurrency {
		lanes.Add("w1", kinds.Ref{Kind: "JobSet.jobset.x-k8s.io", Namespace: "team-a", Name: fmt.Sprint(i)})
	}
	lanes.Add("w1", kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"})
	g.Eventually(s.asked).WithTimeout(time.Minute).Should(Receive(Equal("train")))
}
