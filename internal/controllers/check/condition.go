package check

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// The reasons of the Active condition; MultiKueue has the same.
const (
	reasonActive     = "Active"
	reasonBadConfig  = "BadConfig"
	reasonNoClusters = "NoUsableClusters"
	reasonSomeActive = "SomeActiveClusters"
)

// configKind is the only kind of parameters that a check of ours may have.
const configKind = "MultiKueueConfig"

// condition is the Active condition of a check, given the config that it names
// (nil: there is none) and the clusters by name. Where MultiKueue tells the same
// fact, the words are its.
func condition(check *kueue.AdmissionCheck, config *kueue.MultiKueueConfig, clusters map[string]*kueue.MultiKueueCluster) metav1.Condition {
	c := metav1.Condition{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionFalse, ObservedGeneration: check.Generation}
	name, err := configName(check.Spec.Parameters)
	if err == nil && config == nil {
		err = fmt.Errorf("%s.%s %q not found", configKind, kueue.SchemeGroupVersion.Group, name)
	}
	if err != nil {
		c.Reason, c.Message = reasonBadConfig, "Cannot load the AdmissionChecks parameters: "+err.Error()
		return c
	}
	missing, inactive := unusable(config.Spec.Clusters, clusters)
	switch {
	case len(config.Spec.Clusters) == 0:
		// The API server refuses this today; MultiKueue would call it active.
		c.Reason, c.Message = reasonNoClusters, fmt.Sprintf("%s %q names no clusters: add some to its spec.clusters", configKind, name)
	case len(missing)+len(inactive) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonActive, "The admission check is active"
	case len(missing)+len(inactive) == len(config.Spec.Clusters):
		c.Reason, c.Message = reasonNoClusters, troubles(missing, inactive)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonSomeActive, troubles(missing, inactive)
	}
	if _, err := kinds.PreemptionTimeout(config); err != nil {
		c.Message += fmt.Sprintf("; %s %q: %v", configKind, name, err)
	}
	return c
}

// configName is the name of the MultiKueueConfig that a check refers to; the
// error says what is wrong with the reference.
func configName(ref *kueue.AdmissionCheckParametersReference) (string, error) {
	group := kueue.SchemeGroupVersion.Group
	switch {
	case ref == nil:
		return "", errors.New("missing parameters reference")
	case ref.Name == "":
		return "", errors.New("empty name: bad parameters reference")
	case ref.APIGroup != group:
		return "", fmt.Errorf("wrong group %q, expecting %q: bad parameters reference", ref.APIGroup, group)
	case ref.Kind != configKind:
		return "", fmt.Errorf("wrong kind %q, expecting %q: bad parameters reference", ref.Kind, configKind)
	}
	return ref.Name, nil
}

// unusable returns those of the names that do not exist, and that are not active, in their order.
func unusable(names []string, clusters map[string]*kueue.MultiKueueCluster) (missing, inactive []string) {
	for _, name := range names {
		cluster := clusters[name]
		switch {
		case cluster == nil:
			missing = append(missing, name)
		case !active(cluster):
			inactive = append(inactive, name)
		}
	}
	return missing, inactive
}

func active(cluster *kueue.MultiKueueCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, kueue.MultiKueueClusterActive)
}

func troubles(missing, inactive []string) string {
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("Missing clusters: %v", missing))
	}
	if len(inactive) > 0 {
		parts = append(parts, fmt.Sprintf("Inactive clusters: %v", inactive))
	}
	return strings.Join(parts, ", ")
}
