package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

var jobSet = Kind{
	Framework:  "jobset.x-k8s.io/jobset",
	GVK:        schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	Plural:     "jobsets",
	ManagedBy:  Path{"spec", "managedBy"},
	OwnManager: "jobset.sigs.k8s.io/jobset-controller",
	Suspend:    Path{"spec", "suspend"},
	Drop:       []Path{{"spec", "ttlSecondsAfterFinished"}},
	Templates:  []Path{{"spec", "replicatedJobs", each, "template", "spec", "template"}},
	Running:    []Path{{"replicatedJobsStatus", each, "active"}},
	ended:      whenTrue("Completed", "Failed"),
	ready:      counted("ready", "succeeded"),
	ran:        counted("active", "failed", "restarts"),
	Doc:        Doc{Drop: selfDeleting, Needs: "JobSet"},
}

// selfDeleting is why a time to live stays behind.
const selfDeleting = "The worker would delete the copy by itself, perhaps before its result was seen. Ferry removes it once the result is on the manager."
