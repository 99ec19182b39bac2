package kinds

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Made picks those Workloads that Kueue on the manager regards as the job's. Anybody who may create Workloads can make
// one that names the job as its owner; that one changes nothing. jobs are the objects of the job; of one that is gone
// all Workloads count.
func (k *Kind) Made(wls []*kueue.Workload, jobs []*unstructured.Unstructured) []*kueue.Workload {
	if len(jobs) == 0 {
		return wls
	}
	owned := filter(wls, func(wl *kueue.Workload) bool {
		return slices.ContainsFunc(jobs, func(job *unstructured.Unstructured) bool { return OwnedBy(wl, job) })
	})
	job := jobs[0]
	prebuilt := LinkedTo(job)
	switch {
	case k.Group:
		return filter(owned, func(wl *kueue.Workload) bool { return wl.Name == RefOf(job).Name })
	case prebuilt != "":
		return filter(owned, func(wl *kueue.Workload) bool { return wl.Name == prebuilt })
	case k.Elastic(job) && k.GVK != batchJob.GVK:
		return owned // Kueue names these slices by a count that changes; it too takes all that name the job
	}
	named := filter(owned, func(wl *kueue.Workload) bool { return k.isNamedBy(wl, job) })
	switch {
	case len(named) > 0:
		return named
	case k.Many() || k.Elastic(job) || len(owned) < 2:
		return owned // another version of Kueue, or a controller of its own, may have other names
	}
	// The one that was there first: the job may run by it.
	return []*kueue.Workload{slices.MinFunc(owned, func(a, b *kueue.Workload) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})}
}

// unseenEdits bounds how many edits of an elastic job its slices may be ahead of what a cache shows of the job.
const unseenEdits = 64

// isNamedBy tells whether a Workload has a name that Kueue gives the job's. That holds a hash of the job's UID, and of
// an elastic job's generation when the slice was made.
func (k *Kind) isNamedBy(wl *kueue.Workload, job *unstructured.Unstructured) bool {
	name := job.GetName()
	if k.Many() {
		name += "-" + strconv.Itoa(ReplicaOf(wl))
	}
	cut := strings.LastIndexByte(wl.Name, '-')
	if cut < 0 || !strings.HasPrefix(strings.ToLower(k.GVK.Kind)+"-"+name, wl.Name[:cut]) {
		return false // Kueue cuts long names before the hash
	}
	hash := wl.Name[cut+1:]
	if !k.Elastic(job) {
		return hash == k.nameHash(job, name, "")
	}
	for generation := job.GetGeneration() + unseenEdits; generation > 0; generation-- {
		if hash == k.nameHash(job, name, "\n"+strconv.FormatInt(generation, 10)) {
			return true
		}
	}
	return false
}

// nameHash is no secret: it tells the jobs of one name apart.
func (k *Kind) nameHash(job *unstructured.Unstructured, name, more string) string {
	sum := sha1.Sum([]byte(k.GVK.Kind + "\n" + k.GVK.Group + "\n" + name + "\n" + string(job.GetUID()) + more))
	return hex.EncodeToString(sum[:])[:5]
}

func filter(wls []*kueue.Workload, keep func(*kueue.Workload) bool) []*kueue.Workload {
	var kept []*kueue.Workload
	for _, wl := range wls {
		if keep(wl) {
			kept = append(kept, wl)
		}
	}
	return kept
}
