package lane

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/kinds"
)

type aConn struct {
	fleet.Conn
	session int
}

// aFleet has one worker.
type aFleet struct {
	fleet.View
	conn  fleet.Conn
	reach fleet.Reach
}

func (f *aFleet) Conn(string) (fleet.Conn, bool) { return f.conn, f.conn != nil }
func (f *aFleet) Status(string) fleet.Status     { return fleet.Status{Reach: f.reach} }

// TestWhatALostWorkerMakesFailIsNoError: only what its API server answered, or what fails on a sound connection, is.
func TestWhatALostWorkerMakesFailIsNoError(t *testing.T) {
	dead := errors.New("no route")
	for name, test := range map[string]struct {
		meanwhile func(*aFleet)
		err       error
		fails     bool
		again     bool
	}{
		"sound":               {func(*aFleet) {}, dead, true, false},
		"lost meanwhile":      {func(f *aFleet) { f.conn, f.reach = nil, fleet.Lost }, dead, false, false},
		"connected anew":      {func(f *aFleet) { f.conn = &aConn{session: 2} }, dead, false, false},
		"suspect":             {func(f *aFleet) { f.reach = fleet.Suspect }, dead, false, true},
		"suspect, but it did": {func(f *aFleet) { f.reach = fleet.Suspect }, apierrors.NewInternalError(dead), true, false},
		"nothing failed":      {func(f *aFleet) { f.conn = nil }, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := &aFleet{conn: &aConn{session: 1}, reach: fleet.Connected}
			inner := reconcile.TypedFunc[kinds.Ref](func(context.Context, kinds.Ref) (reconcile.Result, error) {
				test.meanwhile(f)
				return reconcile.Result{}, test.err
			})
			result, err := quiet{inner, "w1", f}.Reconcile(context.Background(), kinds.Ref{})
			g.Expect(err != nil).To(Equal(test.fails))
			g.Expect(result.RequeueAfter > 0).To(Equal(test.again))
		})
	}
}

// TestALaneIsNoNews: what its controller says about itself is a detail, what it says about a job is not.
func TestALaneIsNoNews(t *testing.T) {
	g := NewWithT(t)
	lines := 0
	log := loggers(funcr.New(func(string, string) { lines++ }, funcr.Options{}), "w1")
	log(nil).Info("Starting workers")
	g.Expect(lines).To(BeZero())
	log(&kinds.Ref{}).Info("Writing")
	log(nil).Error(errors.New("broken"), "Reconciler error")
	g.Expect(lines).To(Equal(2))
}
