package reason

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of the condition MultiKueueManagerQuotaAutomation; the first three are MultiKueue's.
const (
	QuotaAutomated    = "QuotaAutomated"
	QuotaNotRequested = "NotRequested"
	QuotaUnsupported  = "UnsupportedConfiguration"
	// QuotaWaits: a worker's queues cannot be read yet.
	QuotaWaits = "WaitingForWorkers"
	// QuotaEdited: somebody else changed the quota that Ferry keeps.
	QuotaEdited = "EditedByOthers"
)

// QuotaIsAutomated says that the quota follows the workers.
func QuotaIsAutomated() string {
	return "ClusterQueue quota is automatically managed based on MultiKueue workers."
}

// QuotaIsManual says that nobody asked for it.
func QuotaIsManual() string { return "MultiKueue manager quota automation has not been requested." }

// QuotaConfigMissing says that there is no config to ask for it.
func QuotaConfigMissing() string { return "The referenced MultiKueueConfig was not found." }

// QuotaNeedsFlavor says that there is nothing to write a quota to.
func QuotaNeedsFlavor() string {
	return "Quota automation requires that the manager-side ClusterQueue has a resource group with a ResourceFlavor: add one that covers what the workers' queues cover"
}

// QuotaMissesResources says that the workers have resources which the queue does not name.
func QuotaMissesResources(missing map[corev1.ResourceName]bool) string {
	return fmt.Sprintf("manager-side coveredResources is missing resources configured on workers: %v", slices.Sorted(maps.Keys(missing)))
}

// QuotaFlavorUnknown says that a worker's flavor counts for none of the manager's.
func QuotaFlavorUnknown(worker, flavor, wanted, label string) string {
	return fmt.Sprintf("Flavor %q of worker %q counts for %q, which is no flavor of this ClusterQueue: name it like one, or label the worker's ResourceFlavor %s=NAME", flavor, worker, wanted, label)
}

// QuotaWaitsFor says which worker has to be read first.
func QuotaWaitsFor(worker, why string) string {
	return withWhy(fmt.Sprintf("Waiting for the queues of worker %q, which cannot be read now", worker), why)
}

// QuotaWasEdited says that an edit is left alone, and how to have it followed again.
func QuotaWasEdited(editor, sum string) string {
	return fmt.Sprintf("%q changed the quota, and it is left as it is; the workers have %s. To have it follow them again, write these numbers, or set quotaManagement of the MultiKueueConfig to Manual and back to Automated", editor, sum)
}
