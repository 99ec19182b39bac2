// Package plan decides what to do about one job: Decide turns what is known into a list of actions, by a visible list of rules.
package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
)

// Snapshot is everything that a decision about one job may depend on, read at one moment.
type Snapshot struct {
	Now time.Time
	Ref kinds.Ref
	// Kind is nil when the job's kind is not dispatched; OwnerKind then says what it is.
	Kind      *kinds.Kind
	OwnerKind string
	// Jobs is the job on the manager, by name: one object, for a pod group its
	// pods; empty when it is gone.
	Jobs []*unstructured.Unstructured
	// Pods are the manager's pods of a kind whose pods are mirrored.
	Pods []*unstructured.Unstructured
	// Unseen is why the job cannot be read on the manager now, if so: there are
	// no Jobs then, and that says nothing.
	Unseen string
	// Workloads are the job's Workloads on the manager, by name.
	Workloads []*kueue.Workload
	// Check is the name of our admission check on them; empty when they have none.
	Check kueue.AdmissionCheckReference
	// CheckUnknown is set when a check on them cannot be attributed to a
	// controller, because its AdmissionCheck does not exist (yet).
	CheckUnknown bool
	// Workers keep the config's order; those that only hold something of ours come last.
	Workers []Worker
	// Host is the worker that last held the claim as far as this process saw;
	// an eviction takes the name out of the Workload before the copy has stopped.
	// Empty once the job was seen to be over and its Workloads are gone.
	Host string
	// ClaimedSince is since when this process knows of the claim; zero without one.
	ClaimedSince time.Time
	// Told are the warnings that this process gave the job's users.
	Told []string
	// Past is what this process knows of the claims on each Workload, by its UID. It knows
	// nothing of one that is missing.
	Past map[types.UID]Past
	// SpecHashes are what kinds.SpecHash gives for Workloads, by UID, where that is known already.
	SpecHashes map[types.UID]string
	// Pruned are the objects, by UID, of whose last mirrored status the manager's
	// API server did not keep all, as it knows fewer fields than the worker's.
	Pruned map[types.UID]Pruned
	// Since is when this process first saw that conditions of copies hold.
	Since map[Fact]time.Time
	// Refused are the objects, by UID, whose status the manager's API server does not take.
	Refused map[types.UID]Refusal
	// Family is what is known of the jobs that this one should run beside.
	Family Family
	// PreemptionTimeout is how long a worker that may preempt for the job gets to admit it, before another one may too;
	// zero: all may at once.
	PreemptionTimeout time.Duration
	// Wish is where the job's users and administrators let it go.
	Wish   placement.Wish
	Policy Policy
}

// Family are jobs that belong together, as the pods of a Deployment do.
type Family struct {
	// Home is the worker that most of them are assigned to; empty if none is.
	Home string
	// Earlier names one that chooses first; empty if this job is the first.
	Earlier string
	// Until is when another may choose in its place.
	Until time.Time
}

// Pruned is what became of a status. Asking for the same again changes nothing
// as long as the job still has the status that was kept.
type Pruned struct{ Asked, Kept map[string]any }

// Refusal is what became of a status that the manager's API server refused.
type Refusal struct {
	// Asked is the status, Tries how often it was asked for, Since the first time.
	Asked map[string]any
	Tries int
	Since time.Time
	// Final tells that the answer will not change by itself, Why what it was.
	Final bool
	Why   string
	// Again is when a status of this object may be tried again, Lasts how long that was put off.
	Again time.Time
	Lasts time.Duration
}

// Worker is one worker as this job sees it.
type Worker struct {
	Name string
	// InConfig tells whether the check's MultiKueueConfig names the worker.
	InConfig bool
	// Reachable tells whether what follows is live.
	Reachable bool
	// Leaving tells that the worker is to be withdrawn from: its MultiKueueCluster is being deleted or leads to
	// another cluster now, or the config names it no longer.
	Leaving bool
	// Unread tells that this process has not been connected to the worker yet: what it holds is not known.
	Unread bool
	// LostSince is when an unreachable or blind worker was lost, or when a worker left the config.
	LostSince time.Time
	// Serves tells whether the worker could take the job at all; Why says what is missing.
	Serves bool
	Why    string
	// AskAgain is when a worker that rests for this job may be asked once more; zero: it does not rest.
	AskAgain time.Time
	// Trouble is why the last write to the worker failed, for a reason that may pass; empty: it did not.
	Trouble string
	// Workloads and Jobs are the objects there that carry our marks for this job, of any age.
	Workloads []*kueue.Workload
	Jobs      []*unstructured.Unstructured
	// Pods are those that the copy of a kind whose pods are mirrored has there.
	Pods []*unstructured.Unstructured
	// Unmarked are objects there that have our origin and a name of this job or its
	// Workloads, but none of Ferry's marks: MultiKueue made them, or seems to have.
	Unmarked Unmarked
	// Holder is what else has the job's name there, as far as it tells; zero for pods, whose names are not watched.
	Holder Holder
	// Sought is what the worker itself answered when it was asked, lately, for the copy of a Workload; see LookUp.
	Sought Sought
	// JobGone is when the worker itself answered that it has no copy of the job; zero when nobody asked, or it is too long ago.
	JobGone time.Time
	// Blind tells that the worker can be reached, but its objects of the job's
	// kind cannot be seen now: there are no Jobs, and that says nothing.
	Blind bool
	// Warning is the last warning about the job that was found there, AskWarnings when to look for another one.
	Warning     string
	AskWarnings time.Time
	// NeverRan tells that the job was placed there by this process, which has not seen it run since.
	NeverRan bool
	// Foreign tells that an object that is not ours holds the job's name there.
	Foreign bool
	// Fit is what the worker's queue has for the job, as predicted; Kueue there decides.
	Fit capacity.Fit
	// Facts are what an administrator says of the worker.
	Facts placement.Facts
	// Moves tells that the job is to leave the worker now, which is being drained.
	Moves bool
}

// Unmarked are objects that nobody has marked as Ferry's.
type Unmarked struct {
	Workloads []*kueue.Workload
	Jobs      []*unstructured.Unstructured
}

// Holder is an object with the job's name that has a multikueue origin and is not known as ours.
type Holder struct {
	Origin string
	// Workload is the one that it is tied to, and OriginUID the job that it was made for; either may be empty.
	Workload, OriginUID string
}

// Sought is the answer to a LookUp. At is zero when nobody asked, or it is too long ago.
type Sought struct {
	At time.Time
	// Origin is the multikueue origin of what is there; empty when there is none.
	Origin string
}

// Policy is what the operator configured.
type Policy struct {
	Origin            string
	Dispatcher        string
	Placement         placement.Placement
	WorkerLostTimeout time.Duration
	// PlaceTimeout is how long the job may take to be created on the worker that admitted it.
	PlaceTimeout time.Duration
	// StartTimeout is how long a job keeps a worker where it does not start; 0: for ever.
	StartTimeout time.Duration
	// PreemptionTimeout is the Snapshot's where its MultiKueueConfig says nothing else; zero: preemption is not orchestrated.
	PreemptionTimeout time.Duration
	// Retain is how long the copy of a job stays on its worker after its end.
	Retain time.Duration
	// FirstConnect is how long it may take to connect to a worker that answers, and to read it.
	FirstConnect time.Duration
}

// Plan is what to do now.
type Plan struct {
	// Rule is the name of the rule that decided.
	Rule string
	// Because is a sentence for a human.
	Because string
	// Manager are the actions on the manager, in order.
	Manager []Action
	// Workers are the actions on each worker, in order.
	Workers map[string][]Action
	// Again is when to decide anew although nothing changes; zero: not needed.
	Again time.Duration
	// Held tells that the job waits for an administrator, as a worker has a copy of it with another multikueue origin.
	Held bool
}

// Decide is the rule table at work: the first rule that answers wins. The same
// Snapshot gives the same Plan.
func Decide(s Snapshot) Plan {
	v := newView(s)
	p := Plan{}
	for _, r := range rules {
		p = Plan{}
		if r.decide(v, &p) {
			p.Rule = r.Name
			v.removeStale(&p)
			v.noteVolumes(&p)
			v.noteUnfenced(&p)
			letGo(s, &p)
			return p
		}
	}
	// The last rule always answers.
	return Plan{}
}

// Rule is one line of the table.
type Rule struct {
	Name string
	// Doc says when the rule answers and what it does.
	Doc    string
	decide func(v *view, p *Plan) bool
}

// Rules returns the table in its order.
func Rules() []Rule { return rules }

var rules = []Rule{
	unseen, notGated, adopt, gone, unknownCheck, finished, finishedOnWorker, keptAway, notOurs, noSuchKind, over, notManaged, noQuota, evictedOnManager, decided,
	readyWithoutClaim, outOfSync, noResult, evictedOnWorker, specDrift, workerLeaves, workerLost, held, unsure, claimed,
	waitForChecks, waitForSiblings, waitForCleanup, admittedSomewhere, waitForFamily, nominate,
}

func (p *Plan) manager(a ...Action) { p.Manager = append(p.Manager, a...) }

func (p *Plan) worker(name string, a ...Action) {
	if len(a) > 0 {
		if p.Workers == nil {
			p.Workers = map[string][]Action{}
		}
		p.Workers[name] = append(p.Workers[name], a...)
	}
}

// again asks to decide anew after d, or sooner when that was asked before.
func (p *Plan) again(d time.Duration) {
	if d > 0 && (p.Again == 0 || d < p.Again) {
		p.Again = d
	}
}
