// Package kinds is the table of job kinds: what is special about each, as data, and the pure functions that make a worker's copy of a job and bring its status back.
package kinds

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Path names a field, from the object's root.
type Path []string

// Kind is one row of the table.
type Kind struct {
	// Framework is the name of the kind in Kueue's integrations.frameworks.
	Framework string
	// Also names further frameworks whose jobs come as objects of this kind.
	Also []string
	GVK  schema.GroupVersionKind
	// name is Kind.Name where the GVK alone does not tell kinds apart.
	name string
	// Group is set when a job is all objects of the GVK that name the same pod group.
	Group bool
	// Pods is set when the kind's own controller runs on the manager too: its pods
	// there are gated for good, and each shows the status of its namesake on the worker.
	Pods bool
	// pods is the row of those pods; nil for the common one.
	pods *Kind
	// Plural is the kind's resource name in the API's paths and in RBAC rules.
	Plural string
	// ManagedBy is the field that keeps the job's own controller away on the
	// manager; empty for kinds without one.
	ManagedBy Path
	// Mark is what ManagedBy holds in jobs that are left to MultiKueue; empty for
	// Kueue's name for it, kueue.x-k8s.io/multikueue.
	Mark string
	// OwnManager is the managedBy value by which the kind's own controller goes;
	// it says no more than an empty field does. Empty for kinds without one.
	OwnManager string
	// Suspend is set on every copy: Kueue on the worker starts it.
	Suspend Path
	// Suspended is the value to set; empty for true.
	Suspended string
	// Drop lists what the copy on a worker does not take over from the manager's job.
	Drop []Path
	// Templates are where the pod templates of a job are that Kueue writes into when it starts it; "*" in a path stands
	// for each element of a list or a map. Empty for kinds whose pods it starts one by one.
	Templates []Path
	// Flow lists what edits reach the copy while the job runs.
	Flow []Path
	// PlainStatus tells that the status is a field like any other, no subresource.
	PlainStatus bool
	// project makes changes to a copy that Drop cannot express; may be nil.
	project func(job *unstructured.Unstructured)
	// ended tells from the status that a job is over; nil when it cannot tell.
	ended func(job *unstructured.Unstructured) bool
	// Claims are where an object asks for volume claims, which controllers on the manager make there too.
	Claims []Path
	// leftAlone says why Kueue leaves a job alone that names a queue; empty if it does not. Nil: it leaves none alone.
	leftAlone func(job *unstructured.Unstructured) string
	// Running are the numbers in the status of what runs at the moment. A job's end may come before the last of its pods
	// has gone, and its operator then corrects them; see AtRest.
	Running []Path
	// ready tells from a copy's status that pods of it are ready, or were to their end; ran that some may have
	// run. Nil for kinds whose status does not tell.
	ready, ran func(job *unstructured.Unstructured) bool
	// Endless tells that jobs of the kind run until they are deleted: their status is never a result.
	Endless bool
	// started tells from the manager's status that an object ran on a worker, and
	// lost gives the status of one that is gone from there; for kinds with Group.
	started func(job *unstructured.Unstructured) bool
	lost    func(job *unstructured.Unstructured, now time.Time) map[string]any
	// Held is the finalizer by which Kueue holds copies that are being deleted, until
	// it sees the end of their Workload, which has to be there for that. Empty for none.
	Held string
	// whole tells whether no more objects will come to a job with Group that has
	// these, all ended; nil: none will.
	whole func(jobs []*unstructured.Unstructured) bool
	// sameRevision tells whether a pod on the worker may stand for the manager's, for kinds with Pods; nil: always.
	sameRevision func(job, pod, worker *unstructured.Unstructured) bool
	// workloads tells how many Workloads a job has; nil: one.
	workloads func(job *unstructured.Unstructured) int
	// Unlinked tells that Kueue refuses the prebuilt-workload link on this kind. Its
	// copy comes without a queue, so that Kueue leaves it alone, until the
	// Workload's copy names it as owner: Kueue takes that for its own.
	Unlinked bool
	// Stopped is what the status of a job says once its copy is gone, in the
	// words of the kind's own controller, and nothing besides. Kueue on the manager
	// takes the job for inactive by it. Nil: a condition Suspended.
	Stopped map[string]any
	// reflect computes the manager's status; nil for the whole status as it is.
	// See Kind.Reflect.
	reflect func(manager, worker *unstructured.Unstructured, now time.Time) map[string]any
	// resize makes the kind elastic, see Kind.Elastic; nil for kinds that Kueue does not let grow.
	resize resize
	// grant is for kinds that Kueue may admit with fewer pods than they ask for; nil for others.
	grant grant
	// Doc is for docs/kinds.md only.
	Doc Doc
}

// Doc is what docs/kinds.md says about a kind beyond its other columns.
type Doc struct {
	// Drop says why the fields in Drop, and what project removes, stay behind.
	Drop string
	// Status says how the status comes back; empty for the whole status.
	Status string
	// Flow says what happens on other edits; may be empty.
	Flow string
	// Needs says what a worker must have installed.
	Needs string
}

// Name is how Ferry writes the kind: Kind.group, as in "Job.batch".
func (k *Kind) Name() string {
	if k.name != "" {
		return k.name
	}
	return k.GVK.GroupKind().String()
}

// Managed tells whether the manager's job is left to MultiKueue, and if not, why:
// the sentence is Kueue's.
func (k *Kind) Managed(job *unstructured.Unstructured) (bool, string) {
	if len(k.ManagedBy) == 0 {
		return true, ""
	}
	by, _, _ := unstructured.NestedString(job.Object, k.ManagedBy...)
	if by == k.mark() {
		return true, ""
	}
	return false, "Expecting " + k.ManagedBy.String() + ` to be "` + k.mark() + `" not "` + by + `"`
}

// Named tells whether the names that others took on a worker are watched. Pods
// are too many for that: a taken name shows when the copy is created.
func (k *Kind) Named() bool { return k.GVK != pod.GVK }

// LeftAlone says why Kueue makes no Workload for a job that names a queue; empty if it makes one.
func (k *Kind) LeftAlone(job *unstructured.Unstructured) string {
	if k.leftAlone == nil {
		return ""
	}
	return k.leftAlone(job)
}

// ClaimsVolumes tells whether controllers on the manager make volume claims for an object.
func (k *Kind) ClaimsVolumes(job *unstructured.Unstructured) bool {
	claims := false
	for _, path := range k.Claims {
		eachAt(job.Object, path, func(map[string]any) { claims = true })
	}
	return claims
}

// Mirrored tells whether Ferry writes the status of the manager's job, rather
// than the kind's own controller there.
func (k *Kind) Mirrored() bool { return !k.Pods }

// Started tells whether the manager's job shows that it ran on a worker.
func (k *Kind) Started(job *unstructured.Unstructured) bool {
	return k.started != nil && k.started(job)
}

// Lost returns the status of the manager's object whose copy vanished from its worker after it had started.
func (k *Kind) Lost(job *unstructured.Unstructured, now time.Time) map[string]any {
	return k.lost(job, now)
}

// Whole tells whether a job whose objects are these, all of them ended, is over;
// to some groups others may still come, in place of those that failed.
func (k *Kind) Whole(jobs []*unstructured.Unstructured) bool { return k.whole == nil || k.whole(jobs) }

// PodKind is the kind of the pods that are mirrored for kinds with Pods.
func (k *Kind) PodKind() *Kind {
	if k.pods != nil {
		return k.pods
	}
	return &pod
}

// Many tells whether Workloads may come to a job, and leave it, while it runs.
func (k *Kind) Many() bool { return k.workloads != nil }

// SameRevision tells whether a pod of the job's copy on the worker is what its
// namesake on the manager shows.
func (k *Kind) SameRevision(job, pod, worker *unstructured.Unstructured) bool {
	return k.sameRevision == nil || k.sameRevision(job, pod, worker)
}

// Expected is how many Workloads a job has when all of it is to run.
func (k *Kind) Expected(job *unstructured.Unstructured) int {
	if k.workloads == nil {
		return 1
	}
	return k.workloads(job)
}

// Reflect returns the status that the manager's job should have, given its copy
// on the worker; worker is nil when no copy exists (any more). The result is
// always one that the API server accepts as the next status of manager.
func (k *Kind) Reflect(manager, worker *unstructured.Unstructured, now time.Time) map[string]any {
	if k.reflect == nil {
		return k.wholeStatus(manager, worker, now)
	}
	return k.reflect(manager, worker, now)
}

// Ended tells whether a job's own status says that it is over; known is false
// for kinds whose status does not tell.
func (k *Kind) Ended(job *unstructured.Unstructured) (ended, known bool) {
	if k.ended == nil {
		return false, false
	}
	return k.ended(job), true
}

// Table is the kinds that are switched on.
type Table struct {
	rows []*Kind
}

// All returns every kind that Ferry knows.
func All() []Kind {
	return slices.Concat([]Kind{batchJob, jobSet}, kubeflowJobs(), []Kind{mpiJob, trainJob, rayJob, rayCluster, rayService, appWrapper, pod, podGroup, statefulSet, leaderWorkerSet})
}

// Frameworks names every kind that Ferry knows as Kueue's integrations.frameworks does.
func Frameworks() []string {
	var names []string
	for _, k := range All() {
		for _, name := range append([]string{k.Framework}, k.Also...) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// NewTable returns the rows whose framework name is among the enabled ones, and after them the custom ones.
func NewTable(enabled []string, custom ...Kind) *Table {
	t := &Table{}
	for _, k := range All() {
		isOn := func(name string) bool { return slices.Contains(enabled, name) }
		if isOn(k.Framework) || slices.ContainsFunc(k.Also, isOn) {
			t.rows = append(t.rows, &k)
		}
	}
	for _, k := range custom {
		t.rows = append(t.rows, &k)
	}
	return t
}

// WithAddresses is the table for a fleet whose pod networks are connected: pods on the manager show the addresses of
// their namesakes on the workers.
func (t *Table) WithAddresses() *Table {
	with := &Table{}
	for _, k := range t.rows {
		row := withAddresses(*k)
		with.rows = append(with.rows, &row)
	}
	return with
}

// Rows returns the enabled kinds in a fixed order.
func (t *Table) Rows() []*Kind { return t.rows }

// Frameworks names the enabled kinds as Kueue's configuration does.
func (t *Table) Frameworks() []string {
	var names []string
	for _, k := range t.rows {
		names = append(names, k.Framework)
	}
	return names
}

// ByName finds a kind by its Name; nil when it is not in the table.
func (t *Table) ByName(name string) *Kind {
	if t == nil {
		return nil
	}
	for _, k := range t.rows {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// GVKs lists what to watch: the group, version and kind of every row, and of the pods that are mirrored.
func (t *Table) GVKs() []schema.GroupVersionKind {
	var gvks []schema.GroupVersionKind
	add := func(gvk schema.GroupVersionKind) {
		if !slices.Contains(gvks, gvk) {
			gvks = append(gvks, gvk)
		}
	}
	for _, k := range t.rows {
		add(k.GVK)
		if k.Pods {
			add(pod.GVK)
		}
	}
	return gvks
}

// Unnamed lists those of GVKs whose other objects on workers are not watched; see Kind.Named.
func (t *Table) Unnamed() []schema.GroupVersionKind {
	if slices.Contains(t.GVKs(), pod.GVK) {
		return []schema.GroupVersionKind{pod.GVK}
	}
	return nil
}
