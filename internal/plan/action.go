package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// Action is one idempotent step. The set is closed.
type Action interface {
	fmt.Stringer
	action()
}

// Nominate persists who is offered the Workload.
type Nominate struct {
	// Workload is the object that the decision was made on; its resourceVersion is the lock.
	Workload *kueue.Workload
	Check    kueue.AdmissionCheckReference
	Workers  []string
	Message  string
}

// Claim persists which worker runs the Workload.
type Claim struct {
	Workload *kueue.Workload
	Check    kueue.AdmissionCheckReference
	Worker   string
	Message  string
}

// SetCheck writes our admission check's state and message. With Ready go the Workload's topology requests, if they wait for that.
type SetCheck struct {
	Workload *kueue.Workload
	Check    kueue.AdmissionCheckReference
	State    kueue.CheckState
	Message  string
	// Event tells whether users get the message as an event too; Warning makes it one.
	Event, Warning bool
	// Informs tells that nobody but users goes by it: it may wait.
	Informs bool
	// Rest, if any, is given to the worker on which the job failed.
	Rest *Rest
	// Tell is the user's job that gets the message as a Warning too; nil for none.
	Tell *unstructured.Unstructured
}

// Rest keeps a worker from being asked to run this job again at once.
type Rest struct {
	Worker, Why string
	// Lenient: the first time has no consequence, as it may happen to any job now and then.
	Lenient bool
	// OfKind: the job was not at fault. Where that happens to one job after another, it will to all of the kind.
	OfKind bool
}

// MirrorStatus writes the manager's job status.
type MirrorStatus struct {
	Kind   *kinds.Kind
	Job    *unstructured.Unstructured
	Status map[string]any
	// Urgent is set for what somebody waits for: the result, and that nothing runs any more.
	Urgent bool
}

// Leisurely are the statuses of a plan that nobody waits for.
func Leisurely(p Plan) []MirrorStatus {
	var some []MirrorStatus
	for _, a := range p.Manager {
		if m, is := a.(MirrorStatus); is && !m.Urgent {
			some = append(some, m)
		}
	}
	return some
}

// Warn tells users what keeps a job from running, on the job and its Workloads.
type Warn struct {
	Jobs      []*unstructured.Unstructured
	Workloads []*kueue.Workload
	Message   string
}

// Finish ends the manager's Workload.
type Finish struct {
	Workload        *kueue.Workload
	Reason, Message string
}

// CreateWorkload makes the copy of a Workload on a worker.
type CreateWorkload struct {
	Copy *kueue.Workload
	// ClusterQueue is the manager's, for the metric.
	ClusterQueue kueue.ClusterQueueReference
}

// CreateJob makes the copy of the job on a worker.
type CreateJob struct{ Copy *unstructured.Unstructured }

// OwnWorkload makes the copy of the job the owner of the Workload's copy: its
// controller, in place of any other owner, or one beside those that it has.
type OwnWorkload struct {
	Copy   *kueue.Workload
	Owner  *unstructured.Unstructured
	Beside bool
}

// EditJob lets the copy of the job follow an edit that its kind allows while it runs.
type EditJob struct{ Copy, Want *unstructured.Unstructured }

// Adopt puts Ferry's marks on what MultiKueue made on a worker, in place.
type Adopt struct{ Copy, Want Object }

// Object is a Workload, or a job.
type Object interface {
	metav1.Object
	runtime.Object
}

// MarkPods puts the marks of an adopted set on its pods, which were made without them.
type MarkPods struct{ Set *unstructured.Unstructured }

// LookUp asks the worker itself, not its cache, whether the copy of the Workload or of the job is gone, or somebody else's.
type LookUp struct {
	GVK schema.GroupVersionKind
	Key types.NamespacedName
	// Origin is that of our copies.
	Origin string
}

// SetPriority lets the copy of a Workload follow the manager's priority.
type SetPriority struct {
	Copy     *kueue.Workload
	Priority *int32
}

// OpenGate lets Kueue on a worker preempt others for the copy of a Workload.
type OpenGate struct {
	Copy *kueue.Workload
	// At is now, by our clock, which tells how long that was allowed.
	At metav1.Time
}

// Resize lets the copy of an elastic job's Workload follow one that needs fewer pods.
type Resize struct {
	Copy    *kueue.Workload
	PodSets []kueue.PodSet
}

// Delete removes one object of ours, and its dependents, from a worker.
type Delete struct {
	GVK schema.GroupVersionKind
	Key types.NamespacedName
	UID types.UID
	// Version is the resourceVersion that was decided on, for what must not go
	// unseen: a job may have ended since. Empty where that does not matter.
	Version string
}

// AskWarnings looks on a worker for the last warning about copies of a job and their pods. Due is since when it is wanted.
type AskWarnings struct {
	Jobs []*unstructured.Unstructured
	Due  time.Time
}

// LetGo takes a finalizer away that alone still holds an object of ours on a worker.
type LetGo struct {
	Copy      *unstructured.Unstructured
	Finalizer string
}

// WaitsFor tells whether an action may not be carried out as long as an earlier
// one of the same plan is refused; all others are independent of each other.
func WaitsFor(action, refused Action) bool {
	switch act := refused.(type) {
	case Delete:
		// A job goes before its Workload: without that, Kueue would deal with the job in its own way.
		other, isDelete := action.(Delete)
		return isDelete && act.GVK.Kind != "Workload" && other.GVK.Kind == "Workload"
	case EditJob:
		// What a Workload gives up or takes over, its job does first.
		switch action.(type) {
		case SetPriority, Resize:
			return true
		}
	}
	return false
}

func (Nominate) action()       {}
func (Claim) action()          {}
func (SetCheck) action()       {}
func (MirrorStatus) action()   {}
func (Warn) action()           {}
func (Finish) action()         {}
func (CreateWorkload) action() {}
func (CreateJob) action()      {}
func (OwnWorkload) action()    {}
func (EditJob) action()        {}
func (SetPriority) action()    {}
func (OpenGate) action()       {}
func (Resize) action()         {}
func (Delete) action()         {}
func (LetGo) action()          {}
func (Adopt) action()          {}
func (MarkPods) action()       {}
func (LookUp) action()         {}
func (AskWarnings) action()    {}

func (a Nominate) String() string {
	return fmt.Sprintf("nominate %v for %s", a.Workers, a.Workload.Name)
}
func (a Claim) String() string { return fmt.Sprintf("claim %s for %s", a.Workload.Name, a.Worker) }
func (a SetCheck) String() string {
	return fmt.Sprintf("set check of %s to %s", a.Workload.Name, a.State)
}
func (a MirrorStatus) String() string {
	return fmt.Sprintf("mirror status of %s %s", a.Kind.GVK.Kind, a.Job.GetName())
}
func (a Warn) String() string           { return "warn about " + a.Jobs[0].GetName() }
func (a Finish) String() string         { return fmt.Sprintf("finish %s", a.Workload.Name) }
func (a CreateWorkload) String() string { return fmt.Sprintf("create Workload %s", a.Copy.Name) }
func (a CreateJob) String() string {
	return fmt.Sprintf("create %s %s", a.Copy.GetKind(), a.Copy.GetName())
}
func (a OwnWorkload) String() string {
	return fmt.Sprintf("give %s its owner %s", a.Copy.Name, a.Owner.GetName())
}
func (a EditJob) String() string {
	return fmt.Sprintf("edit %s %s", a.Copy.GetKind(), a.Copy.GetName())
}
func (a LetGo) String() string {
	return fmt.Sprintf("let %s %s go", a.Copy.GetKind(), a.Copy.GetName())
}
func (a Adopt) String() string {
	kind := "Workload"
	if job, ok := a.Copy.(*unstructured.Unstructured); ok {
		kind = job.GetKind()
	}
	return fmt.Sprintf("adopt %s %s", kind, a.Copy.GetName())
}
func (a MarkPods) String() string    { return "mark the pods of " + a.Set.GetName() }
func (a LookUp) String() string      { return "look up " + a.GVK.Kind + " " + a.Key.Name }
func (a AskWarnings) String() string { return "look for warnings about " + a.Jobs[0].GetName() }
func (a SetPriority) String() string { return fmt.Sprintf("set priority of %s", a.Copy.Name) }
func (a OpenGate) String() string    { return fmt.Sprintf("let %s preempt", a.Copy.Name) }
func (a Resize) String() string      { return fmt.Sprintf("resize %s", a.Copy.Name) }
func (a Delete) String() string      { return fmt.Sprintf("delete %s %s", a.GVK.Kind, a.Key.Name) }
