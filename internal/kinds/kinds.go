// Package kinds is the table of job kinds: what is special about each, as data, and the pure functions that make a worker's copy of a job and bring its status back.
package kinds

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Path names a field, from the object's root.
type Path []string

// Kind is one row of the table.
type Kind struct {
	// Framework is the name of the kind in Kueue's integrations.frameworks.
	Framework string
	GVK       schema.GroupVersionKind
	// Plural is the kind's resource name in the API's paths and in RBAC rules.
	Plural string
	// ManagedBy is the field that keeps the job's own controller away on the
	// manager; empty for kinds without one.
	ManagedBy Path
	// OwnManager is the managedBy value by which the kind's own controller goes;
	// it says no more than an empty field does. Empty for kinds without one.
	OwnManager string
	// Suspend is set on every copy: Kueue on the worker starts it.
	Suspend Path
	// Drop lists what the copy on a worker does not take over from the manager's job.
	Drop []Path
	// Flow lists what edits reach the copy while the job runs.
	Flow []Path
	// project makes changes to a copy that Drop cannot express; may be nil.
	project func(job *unstructured.Unstructured)
	// ended tells from the status that a job is over; nil when it cannot tell.
	ended func(job *unstructured.Unstructured) bool
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
func (k *Kind) Name() string { return k.GVK.GroupKind().String() }

// Managed tells whether the manager's job is left to MultiKueue, and if not, why:
// the sentence is Kueue's.
func (k *Kind) Managed(job *unstructured.Unstructured) (bool, string) {
	if len(k.ManagedBy) == 0 {
		return true, ""
	}
	by, _, _ := unstructured.NestedString(job.Object, k.ManagedBy...)
	if by == kueue.MultiKueueControllerName {
		return true, ""
	}
	return false, "Expecting " + pathString(k.ManagedBy) + ` to be "` + kueue.MultiKueueControllerName + `" not "` + by + `"`
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
	return slices.Concat([]Kind{batchJob, jobSet}, kubeflowJobs(), []Kind{mpiJob, trainJob, rayJob, rayCluster, rayService, appWrapper})
}

// Frameworks names every kind that Ferry knows as Kueue's integrations.frameworks does.
func Frameworks() []string {
	var names []string
	for _, k := range All() {
		names = append(names, k.Framework)
	}
	return names
}

// NewTable returns the rows whose framework name is among the enabled ones.
func NewTable(enabled []string) *Table {
	t := &Table{}
	for _, k := range All() {
		if slices.Contains(enabled, k.Framework) {
			t.rows = append(t.rows, &k)
		}
	}
	return t
}

// Rows returns the enabled kinds in a fixed order.
func (t *Table) Rows() []*Kind { return t.rows }

// ByName finds a kind by its Name; nil when it is not in the table.
func (t *Table) ByName(name string) *Kind {
	for _, k := range t.rows {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// GVKs lists the group, version and kind of every row.
func (t *Table) GVKs() []schema.GroupVersionKind {
	var gvks []schema.GroupVersionKind
	for _, k := range t.rows {
		gvks = append(gvks, k.GVK)
	}
	return gvks
}

func pathString(p Path) string {
	s := ""
	for i, field := range p {
		if i > 0 {
			s += "."
		}
		s += field
	}
	return s
}
