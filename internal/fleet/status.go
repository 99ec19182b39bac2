package fleet

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reach is how far a worker can be reached.
type Reach string

// The values of Reach. A worker that was lost stays Lost while Ferry tries to connect again.
const (
	Unknown    Reach = ""
	Connecting Reach = "Connecting" // first attempt since the credentials were set
	Connected  Reach = "Connected"
	Suspect    Reach = "Suspect" // some probes failed; still used
	Lost       Reach = "Lost"
	Unusable   Reach = "Unusable" // its credentials cannot be used
)

// Reasons of the Active condition that Kueue tells too.
const (
	ReasonActive                 = "Active"
	ReasonClientConnectionFailed = "ClientConnectionFailed"
	ReasonBadKubeConfig          = "BadKubeConfig"
	ReasonInsecureKubeConfig     = "InsecureKubeConfig"
	ReasonBadClusterProfile      = "BadClusterProfile"
	ReasonBadRestConfig          = "BadRestConfig"
)

// Status is what is known about the connection to a worker.
type Status struct {
	Reach Reach
	// LostSince is zero while Connected or Suspect; else when the loss began: the first failure of the streak, or
	// for a worker that never connected, when the fleet first heard of it. Failed attempts and new credentials do
	// not move it.
	LostSince time.Time
	// Seen tells that there was a connection since this process started, be it that the worker was removed since.
	Seen bool
	// Leaving tells that the worker is to be withdrawn from; see Fleet.Leave.
	Leaving bool
	// Reason is the reason of the Active condition.
	Reason string
	// Message says what failed, against which server, and what to do. It never holds a secret.
	Message string
}

// Usable tells whether the worker has a live connection.
func (s Status) Usable() bool { return s.Reach == Connected || s.Reach == Suspect }

// NotServedError tells that a kind cannot be read on a worker now.
type NotServedError struct {
	Kind schema.GroupVersionKind
	Why  string
}

func (e *NotServedError) Error() string {
	return fmt.Sprintf("%s cannot be read on this worker: %s", e.Kind.Kind, e.Why)
}
