// Package quota decides what a ClusterQueue on the manager has to give, from what the workers' queues have: values in, quota out.
package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// FlavorLabel on a worker's ResourceFlavor names the manager's flavor that it counts for, where the names differ.
const FlavorLabel = "ferry.dev/manager-flavor"

// Worker is what one worker of the MultiKueueConfig has for a queue of the manager.
type Worker struct {
	Name string
	// Out tells that its quota does not count: it is cordoned, or lost for good as far as one can tell.
	Out bool
	// Known tells whether Queues says what it has now; if not, Why says why.
	Known bool
	Why   string
	// Queues are the ClusterQueues there which serve a LocalQueue of the manager's queue.
	Queues []*kueue.ClusterQueue
	// Flavors are the labels of its ResourceFlavors by name.
	Flavors map[kueue.ResourceFlavorReference]map[string]string
}

// Request is what a decision depends on.
type Request struct {
	Queue *kueue.ClusterQueue
	// Dispatched tells whether one of the queue's checks is MultiKueue's.
	Dispatched bool
	// Automated tells whether the MultiKueueConfig of the queue asks for it; Trouble, why there is none to ask.
	Automated bool
	Trouble   string
	Workers   []Worker
	// Editor is who changed the queue's resource groups after Ferry did; empty: nobody, or Ferry never did.
	Editor string
}

// Decision is what becomes of the queue.
type Decision struct {
	// Groups are the resource groups that the queue should have; nil: those that it has.
	Groups []kueue.ResourceGroup
	// Condition is MultiKueueManagerQuotaAutomation as it should be; nil: as it is.
	Condition *metav1.Condition
	// Forget tells that there should be no such condition.
	Forget bool
}

// Decide follows the workers. Where MultiKueue tells the same fact, the condition's words are its; but several flavors
// on the manager are allowed, limits stay, and an edit by somebody else is left alone.
func Decide(r Request) Decision {
	before := meta.FindStatusCondition(r.Queue.Status.Conditions, kueue.MultiKueueManagerQuotaAutomation)
	switch {
	case !r.Automated && before == nil:
		return Decision{} // nobody asked, so there is nothing to say
	case !r.Dispatched:
		return Decision{Forget: true}
	case r.Trouble != "":
		return r.says(metav1.ConditionFalse, reason.QuotaUnsupported, r.Trouble)
	case !r.Automated:
		return r.says(metav1.ConditionFalse, reason.QuotaNotRequested, reason.QuotaIsManual())
	}
	unknown := slices.IndexFunc(r.Workers, func(w Worker) bool { return !w.Out && !w.Known })
	switch {
	case unknown < 0:
		return r.follow(before)
	case before != nil && before.Status == metav1.ConditionTrue:
		return Decision{} // what it had last stays until the worker is back, or out
	default:
		return r.says(metav1.ConditionFalse, reason.QuotaWaits, reason.QuotaWaitsFor(r.Workers[unknown].Name, r.Workers[unknown].Why))
	}
}

// follow gives the queue what all workers have that count.
func (r Request) follow(before *metav1.Condition) Decision {
	groups, trouble := r.sum()
	switch {
	case trouble != "":
		return r.says(metav1.ConditionFalse, reason.QuotaUnsupported, trouble)
	case equality.Semantic.DeepEqual(groups, r.Queue.Spec.ResourceGroups):
		return r.says(metav1.ConditionTrue, reason.QuotaAutomated, reason.QuotaIsAutomated())
	case r.Editor != "" && isFollowed(before):
		return r.says(metav1.ConditionFalse, reason.QuotaEdited, reason.QuotaWasEdited(r.Editor, show(groups)))
	}
	d := r.says(metav1.ConditionTrue, reason.QuotaAutomated, reason.QuotaIsAutomated())
	d.Groups = groups
	return d
}

// isFollowed tells whether Ferry wrote the quota before: only then an edit is one against it.
func isFollowed(c *metav1.Condition) bool {
	return c != nil && (c.Reason == reason.QuotaAutomated || c.Reason == reason.QuotaEdited)
}

func (r Request) says(status metav1.ConditionStatus, why, message string) Decision {
	return Decision{Condition: &metav1.Condition{
		Type: kueue.MultiKueueManagerQuotaAutomation, Status: status, Reason: why, Message: message, ObservedGeneration: r.Queue.Generation,
	}}
}

// sum gives the queue's resource groups with the nominal quota of all workers that count.
func (r Request) sum() (groups []kueue.ResourceGroup, trouble string) {
	if len(r.Queue.Spec.ResourceGroups) == 0 {
		return nil, reason.QuotaNeedsFlavor()
	}
	totals := map[place]resource.Quantity{}
	missing := map[corev1.ResourceName]bool{}
	for _, w := range r.Workers {
		if w.Out {
			continue
		}
		for flavor, quota := range w.each() {
			at, found, unmapped := r.placeOf(w, flavor, quota.Name)
			switch {
			case unmapped != "":
				return nil, unmapped
			case !found:
				missing[quota.Name] = true
			default:
				total := totals[at]
				total.Add(quota.NominalQuota)
				totals[at] = total
			}
		}
	}
	if len(missing) > 0 {
		return nil, reason.QuotaMissesResources(missing)
	}
	return filled(r.Queue.Spec.ResourceGroups, totals), ""
}

// place is one quota of the manager's queue.
type place struct {
	flavor   kueue.ResourceFlavorReference
	resource corev1.ResourceName
}

// each goes through all nominal quotas of a worker's queues, each queue once.
func (w Worker) each() func(yield func(kueue.ResourceFlavorReference, kueue.ResourceQuota) bool) {
	return func(yield func(kueue.ResourceFlavorReference, kueue.ResourceQuota) bool) {
		for _, cq := range w.Queues {
			for _, group := range cq.Spec.ResourceGroups {
				for _, flavor := range group.Flavors {
					for _, quota := range flavor.Resources {
						if !yield(flavor.Name, quota) {
							return
						}
					}
				}
			}
		}
	}
}

// placeOf is where a worker's quota counts: in the group that covers the resource, for its only flavor, or for the one
// that the worker's flavor is labelled with or named like. Not found: no group covers it.
func (r Request) placeOf(w Worker, flavor kueue.ResourceFlavorReference, of corev1.ResourceName) (at place, found bool, unmapped string) {
	for _, group := range r.Queue.Spec.ResourceGroups {
		if !slices.Contains(group.CoveredResources, of) {
			continue
		}
		if len(group.Flavors) == 1 {
			return place{group.Flavors[0].Name, of}, true, ""
		}
		wanted := flavor
		if label := w.Flavors[flavor][FlavorLabel]; label != "" {
			wanted = kueue.ResourceFlavorReference(label)
		}
		if !slices.ContainsFunc(group.Flavors, func(f kueue.FlavorQuotas) bool { return f.Name == wanted }) {
			return place{}, false, reason.QuotaFlavorUnknown(w.Name, string(flavor), string(wanted), FlavorLabel)
		}
		return place{wanted, of}, true, ""
	}
	return place{}, false, ""
}

// filled gives groups with those nominal quotas, and all else as it was. Kueue wants the resources in the order of the group.
func filled(groups []kueue.ResourceGroup, totals map[place]resource.Quantity) []kueue.ResourceGroup {
	var out []kueue.ResourceGroup
	for i := range groups {
		group := groups[i].DeepCopy()
		for f := range group.Flavors {
			flavor := &group.Flavors[f]
			limits := flavor.Resources
			flavor.Resources = make([]kueue.ResourceQuota, 0, len(group.CoveredResources))
			for _, name := range group.CoveredResources {
				quota := kueue.ResourceQuota{Name: name}
				if at := slices.IndexFunc(limits, func(q kueue.ResourceQuota) bool { return q.Name == name }); at >= 0 {
					quota = limits[at]
				}
				quota.NominalQuota = totals[place{flavor.Name, name}]
				flavor.Resources = append(flavor.Resources, quota)
			}
		}
		out = append(out, *group)
	}
	return out
}

// show writes quotas for people: "gpu-a: cpu 10, nvidia.com/gpu 8".
func show(groups []kueue.ResourceGroup) string {
	var flavors reason.List
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			var quotas []string
			for _, quota := range flavor.Resources {
				quotas = append(quotas, string(quota.Name)+" "+quota.NominalQuota.String())
			}
			flavors.Add(string(flavor.Name), ": ", strings.Join(quotas, ", "))
		}
	}
	return flavors.String()
}
