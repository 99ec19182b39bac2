package plan

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
)

// madeWithin is how long Kueue may take to make the Workload of a job before its user is told that there is none.
const madeWithin = time.Minute

// checkGoesWithin is how long Kueue may take to drop a check that does not apply; one that stays does.
const checkGoesWithin = 10 * time.Second

var keptAway = Rule{
	Name: "KeptAway",
	Doc:  "The job is kept from running on the manager, and Kueue admitted it without our check (it requests nothing that has quota, or its flavor has no such check), or makes no Workload for it: it never runs anywhere, and its user gets a warning that says why and what to do. The check of a Workload that got no flavor is about to go: nobody is asked meanwhile.",
	decide: func(v *view, p *Plan) bool {
		switch {
		case !v.isKeptAway():
			return false
		case len(v.Workloads) == 0:
			return v.lacksWorkload(p)
		case v.Check != "":
			return v.losesItsCheck(p)
		case !v.all(isAdmitted):
			return false
		}
		v.removeFromAllBut(p)
		v.warn(p, v.withoutCheck())
		return true
	},
}

// losesItsCheck: Kueue drops a check right after it reserved quota without the flavors that it is for.
func (v *view) losesItsCheck(p *Plan) bool {
	reserved := meta.FindStatusCondition(v.Workloads[0].Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil || !v.all(hasNoFlavor) {
		return false
	}
	left := reserved.LastTransitionTime.Add(checkGoesWithin).Sub(v.Now)
	if left <= 0 {
		return false
	}
	p.Because = "The job got no flavor, so its check is about to go"
	p.again(left)
	v.removeFromAllBut(p)
	return true
}

// isKeptAway: nothing on the manager runs the job, and no worker has it.
func (v *view) isKeptAway() bool {
	if v.Kind == nil || len(v.Jobs) == 0 || v.claim() != "" || v.Host != "" || v.CheckUnknown {
		return false
	}
	if v.Kind.Pods {
		return len(v.Pods) > 0 // those that Ferry sees are gated
	}
	return !slices.ContainsFunc(v.Jobs, func(job *unstructured.Unstructured) bool {
		managed, _ := v.Kind.Managed(job)
		return !managed || !isThere(job) || v.allEnded(one(job))
	})
}

// lacksWorkload warns the user of a job that Kueue leaves alone.
func (v *view) lacksWorkload(p *Plan) bool {
	status, _, _ := unstructured.NestedMap(v.Jobs[0].Object, "status")
	if len(v.Kind.ManagedBy) == 0 || len(status) > 0 || slices.ContainsFunc(v.Workers, func(w Worker) bool { return v.holds(&w) }) {
		return false
	}
	if left := v.Jobs[0].GetCreationTimestamp().Add(madeWithin).Sub(v.Now); left > 0 {
		p.Because = "The job has no Workload yet"
		p.again(left)
		return true
	}
	v.warn(p, reason.NoWorkload(v.Kind.GVK.Kind))
	return true
}

// withoutCheck says why Kueue admitted the job without our check.
func (v *view) withoutCheck() string {
	wl := v.Workloads[0]
	queue := string(clusterQueue(wl))
	if v.all(hasNoFlavor) {
		return reason.RequestsNothing(queue)
	}
	return reason.FlavorWithoutCheck(strings.Join(flavorsOf(wl), ", "), queue)
}

func isAdmitted(wl *kueue.Workload) bool {
	return isTrue(wl, kueue.WorkloadAdmitted) && !isTrue(wl, kueue.WorkloadFinished) && !isTrue(wl, kueue.WorkloadEvicted)
}

// hasNoFlavor: the Workload has quota, and none of it is of a flavor. Checks come with flavors.
func hasNoFlavor(wl *kueue.Workload) bool {
	return wl.Status.Admission != nil && len(wl.Status.Admission.PodSetAssignments) > 0 && len(flavorsOf(wl)) == 0
}

func flavorsOf(wl *kueue.Workload) []string {
	var names []string
	if wl.Status.Admission == nil {
		return nil
	}
	for _, set := range wl.Status.Admission.PodSetAssignments {
		for _, flavor := range set.Flavors {
			names = append(names, string(flavor))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// warn tells the users of the job something once.
func (v *view) warn(p *Plan, message string) {
	p.Because = reason.Fit(message)
	if !slices.Contains(v.Told, message) {
		p.manager(Warn{Jobs: v.Jobs, Workloads: v.Workloads, Message: message})
	}
}
