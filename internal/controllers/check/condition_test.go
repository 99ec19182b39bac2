package check

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func newCheck(parameters *kueue.AdmissionCheckParametersReference) *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: "check", Generation: 7},
		Spec:       kueue.AdmissionCheckSpec{ControllerName: kueue.MultiKueueControllerName, Parameters: parameters},
	}
}

func parameters(name string) *kueue.AdmissionCheckParametersReference {
	return &kueue.AdmissionCheckParametersReference{APIGroup: "kueue.x-k8s.io", Kind: "MultiKueueConfig", Name: name}
}

func newConfig(clusters ...string) *kueue.MultiKueueConfig {
	return &kueue.MultiKueueConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "config", Generation: 1},
		Spec:       kueue.MultiKueueConfigSpec{Clusters: clusters},
	}
}

// newCluster makes a cluster; status empty: nothing is known of it yet.
func newCluster(name string, status metav1.ConditionStatus) *kueue.MultiKueueCluster {
	c := &kueue.MultiKueueCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	if status != "" {
		c.Status.Conditions = []metav1.Condition{{
			Type: kueue.MultiKueueClusterActive, Status: status, Reason: "R", LastTransitionTime: metav1.Unix(1, 0),
		}}
	}
	return c
}

func byName(clusters ...*kueue.MultiKueueCluster) map[string]*kueue.MultiKueueCluster {
	m := map[string]*kueue.MultiKueueCluster{}
	for _, c := range clusters {
		m[c.Name] = c
	}
	return m
}

func TestCondition(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	const cannot = "Cannot load the AdmissionChecks parameters: "
	good := parameters("config")
	wrongKind, wrongGroup := parameters("config"), parameters("config")
	wrongKind.Kind, wrongGroup.APIGroup = "ConfigMap", "example.com"
	w1, w2 := newCluster("w1", yes), newCluster("w2", yes)
	soon := newConfig("w1")
	soon.Annotations = map[string]string{"ferry.dev/preemption-timeout": "soon"}
	for name, test := range map[string]struct {
		parameters      *kueue.AdmissionCheckParametersReference
		config          *kueue.MultiKueueConfig
		clusters        map[string]*kueue.MultiKueueCluster
		status          metav1.ConditionStatus
		reason, message string
	}{
		"all active":                        {good, newConfig("w1", "w2"), byName(w1, w2), yes, "Active", "The admission check is active"},
		"an annotation that cannot be read": {good, soon, byName(w1), yes, "Active", `The admission check is active; MultiKueueConfig "config": annotation ferry.dev/preemption-timeout: "soon" is no duration such as 90s or 5m; what Ferry's configuration says holds`},
		"others do not count":               {good, newConfig("w1"), byName(w1, newCluster("w3", no)), yes, "Active", "The admission check is active"},
		"no parameters":                     {nil, nil, nil, no, "BadConfig", cannot + "missing parameters reference"},
		"no name":                           {parameters(""), nil, nil, no, "BadConfig", cannot + "empty name: bad parameters reference"},
		"wrong kind":                        {wrongKind, nil, nil, no, "BadConfig", cannot + `wrong kind "ConfigMap", expecting "MultiKueueConfig": bad parameters reference`},
		"wrong group":                       {wrongGroup, nil, nil, no, "BadConfig", cannot + `wrong group "example.com", expecting "kueue.x-k8s.io": bad parameters reference`},
		"wrong kind, config of that name": {wrongKind, newConfig("w1"), byName(w1), no, "BadConfig",
			cannot + `wrong kind "ConfigMap", expecting "MultiKueueConfig": bad parameters reference`},
		"unknown config":     {good, nil, nil, no, "BadConfig", cannot + `MultiKueueConfig.kueue.x-k8s.io "config" not found`},
		"empty config":       {good, newConfig(), byName(w1), no, "NoUsableClusters", `MultiKueueConfig "config" names no clusters: add some to its spec.clusters`},
		"all missing":        {good, newConfig("w2", "w1"), nil, no, "NoUsableClusters", "Missing clusters: [w2 w1]"},
		"all inactive":       {good, newConfig("w1", "w2"), byName(newCluster("w1", no), newCluster("w2", "")), no, "NoUsableClusters", "Inactive clusters: [w1 w2]"},
		"unknown is no yes":  {good, newConfig("w1"), byName(newCluster("w1", unknown)), no, "NoUsableClusters", "Inactive clusters: [w1]"},
		"missing, inactive":  {good, newConfig("w1", "w2"), byName(newCluster("w2", no)), no, "NoUsableClusters", "Missing clusters: [w1], Inactive clusters: [w2]"},
		"some missing":       {good, newConfig("w1", "w2"), byName(w2), yes, "SomeActiveClusters", "Missing clusters: [w1]"},
		"some inactive":      {good, newConfig("w1", "w2"), byName(w1, newCluster("w2", no)), yes, "SomeActiveClusters", "Inactive clusters: [w2]"},
		"some of everything": {good, newConfig("w1", "w2", "w3"), byName(w2, newCluster("w3", no)), yes, "SomeActiveClusters", "Missing clusters: [w1], Inactive clusters: [w3]"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(condition(newCheck(test.parameters), test.config, test.clusters)).To(Equal(metav1.Condition{
				Type: "Active", Status: test.status, Reason: test.reason, Message: test.message, ObservedGeneration: 7,
			}))
		})
	}
}

// TestConditionIsTrueWithAnActiveCluster: a check is active exactly when one of its clusters is.
func TestConditionIsTrueWithAnActiveCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`w[1-9]`), 0, 5, rapid.ID[string]).Draw(t, "names")
		state := rapid.SampledFrom([]metav1.ConditionStatus{"absent", "", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown})
		clusters, want := byName(), metav1.ConditionFalse
		for _, name := range names {
			s := state.Draw(t, name)
			if s != "absent" {
				clusters[name] = newCluster(name, s)
			}
			if s == metav1.ConditionTrue {
				want = metav1.ConditionTrue
			}
		}
		got := condition(newCheck(parameters("config")), newConfig(names...), clusters)
		NewWithT(t).Expect(got.Status).To(Equal(want))
		NewWithT(t).Expect(got.Message).NotTo(BeEmpty())
	})
}
