package config_test

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/kinds"
)

func TestNoRoleHasWildcards(t *testing.T) {
	for name, rules := range roles(t) {
		for _, rule := range rules {
			for _, words := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups, rule.NonResourceURLs} {
				NewWithT(t).Expect(words).NotTo(ContainElement(ContainSubstring("*")), name)
			}
			NewWithT(t).Expect(rule.Verbs).NotTo(ContainElement(Or(Equal("escalate"), Equal("bind"), Equal("impersonate"))), name)
		}
	}
}

func TestWhatFerryMayDo(t *testing.T) {
	granted := roles(t)
	const read, write, kueue = "get list watch", "create update patch delete", "kueue.x-k8s.io"
	for _, test := range []struct {
		role, verbs, group, resource string
		want                         bool
	}{
		{"ferry-worker", "get list watch create patch delete", kueue, "workloads", true},
		{"ferry-worker", "patch", kueue, "workloads/status", true},
		{"ferry-worker", "get update", kueue, "workloads/status", false},
		{"ferry-worker", read, kueue, "localqueues", true},
		{"ferry-worker", write, kueue, "localqueues", false},
		{"ferry-worker", read, kueue, "clusterqueues", true},
		{"ferry-worker", read, kueue, "cohorts", true},
		{"ferry-worker", read, kueue, "resourceflavors", true},
		{"ferry-worker", write, kueue, "clusterqueues", false},
		{"ferry-worker", "get list watch create patch delete", "batch", "jobs", true},
		{"ferry-worker", "update patch", "batch", "jobs/status", false},
		{"ferry-worker", "deletecollection", "batch", "jobs", false},
		{"ferry-worker", read + " " + write, "", "secrets", false},
		{"ferry-worker", "get list watch create patch delete", "", "pods", true},
		{"ferry-worker", "create", "", "pods/exec", false},
		{"ferry-worker", "update patch", "", "pods/status", false},
		{"ferry-worker", read + " " + write, "apps", "deployments", false},
		{"ferry-worker", "create", "", "serviceaccounts/token", false},

		{"ferry-manager", "get list watch", kueue, "workloads", true},
		{"ferry-manager", "create delete deletecollection", kueue, "workloads", false},
		{"ferry-manager", "patch", kueue, "workloads/status", true},
		{"ferry-manager", read, "batch", "jobs", true},
		{"ferry-manager", write, "batch", "jobs", false},
		{"ferry-manager", "patch", "batch", "jobs/status", true},
		{"ferry-manager", write, "", "pods", false},
		{"ferry-manager", "patch", "", "pods/status", true},
		{"ferry-manager", "patch", "apps", "statefulsets/status", false},
		{"ferry-manager", write, "apps", "deployments", false},
		{"ferry-manager", read, kueue, "admissionchecks", true},
		{"ferry-manager", "patch", kueue, "admissionchecks/status", true},
		{"ferry-manager", read, kueue, "multikueueconfigs", true},
		{"ferry-manager", read, kueue, "multikueueclusters", true},
		{"ferry-manager", "patch", kueue, "multikueueclusters/status", true},
		{"ferry-manager", "patch", kueue, "multikueueclusters", true},
		{"ferry-manager", "create update delete deletecollection", kueue, "multikueueclusters", false},
		{"ferry-manager", write, kueue, "multikueueconfigs", false},
		{"ferry-manager", read, kueue, "clusterqueues", true},
		{"ferry-manager", "patch", kueue, "clusterqueues", true},
		{"ferry-manager", "patch", kueue, "clusterqueues/status", true},
		{"ferry-manager", "create update delete", kueue, "clusterqueues", false},
		{"ferry-manager", read, kueue, "localqueues", true},
		{"ferry-manager", read, "apiextensions.k8s.io", "customresourcedefinitions", true},
		{"ferry-manager", write, "apiextensions.k8s.io", "customresourcedefinitions", false},
		{"ferry-manager", "create patch", "", "events", true},
		{"ferry-manager", "create patch", "events.k8s.io", "events", true},
		{"ferry-manager", "create", "authentication.k8s.io", "tokenreviews", true},
		{"ferry-manager", "create", "authorization.k8s.io", "subjectaccessreviews", true},
		{"ferry-manager", read + " " + write, "", "secrets", false},
		{"ferry-manager", read, "", "namespaces", true},
		{"ferry-manager", write, "", "namespaces", false},

		{"ferry-secrets", read, "", "secrets", true},
		{"ferry-secrets", write, "", "secrets", false},
		{"ferry-secrets", "get", "multicluster.x-k8s.io", "clusterprofiles", true},
		{"ferry-secrets", "list watch create update patch delete", "multicluster.x-k8s.io", "clusterprofiles", false},
		{"ferry-leader-election", "create", "coordination.k8s.io", "leases", true},
	} {
		rules := granted[test.role]
		NewWithT(t).Expect(rules).NotTo(BeEmpty(), test.role)
		for _, verb := range strings.Fields(test.verbs) {
			NewWithT(t).Expect(allows(rules, verb, test.group, test.resource)).To(Equal(test.want),
				"%s: %s %s.%s", test.role, verb, test.resource, test.group)
		}
	}
}

// TestEveryKindMayBeDispatched: copies are made and removed on workers; on the manager only the status is written.
func TestEveryKindMayBeDispatched(t *testing.T) {
	granted := roles(t)
	for _, kind := range kinds.All() {
		for _, verb := range strings.Fields("get list watch create update patch delete deletecollection") {
			copies, originals := verb != "update" && verb != "deletecollection", slices.Contains([]string{"get", "list", "watch"}, verb)
			g := NewWithT(t)
			g.Expect(allows(granted["ferry-worker"], verb, kind.GVK.Group, kind.Plural)).To(Equal(copies), "%s %s on a worker", verb, kind.Plural)
			g.Expect(allows(granted["ferry-worker"], verb, kind.GVK.Group, kind.Plural+"/status")).To(BeFalse(), "%s %s/status on a worker", verb, kind.Plural)
			g.Expect(allows(granted["ferry-manager"], verb, kind.GVK.Group, kind.Plural)).To(Equal(originals), "%s %s on the manager", verb, kind.Plural)
			g.Expect(allows(granted["ferry-manager"], verb, kind.GVK.Group, kind.Plural+"/status")).To(Equal(verb == "patch" && kind.Mirrored()), "%s %s/status on the manager", verb, kind.Plural)
		}
	}
}

func TestRulesBoundToNames(t *testing.T) {
	g, granted := NewWithT(t), roles(t)
	g.Expect(granted["ferry-leader-election"]).To(ContainElement(And(
		HaveField("Verbs", ConsistOf("get", "update", "patch")), HaveField("ResourceNames", ConsistOf(config.DefaultLease)))))
}

func TestEveryBindingIsToFerry(t *testing.T) {
	g := NewWithT(t)
	ferry := rbacv1.Subject{Kind: "ServiceAccount", Name: "ferry", Namespace: config.DefaultNamespace}
	known := roles(t)
	for _, b := range every[*rbacv1.ClusterRoleBinding](t) {
		g.Expect(b.Subjects).To(ConsistOf(ferry), b.Name)
		g.Expect(known).To(HaveKey(b.RoleRef.Name))
	}
	for _, b := range every[*rbacv1.RoleBinding](t) {
		g.Expect(b.Subjects).To(ConsistOf(ferry), b.Name)
		g.Expect(b.RoleRef.Kind).To(Equal("Role"))
		g.Expect(known).To(HaveKey(b.RoleRef.Name))
	}
}

func roles(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	found := map[string][]rbacv1.PolicyRule{}
	for _, role := range every[*rbacv1.ClusterRole](t) {
		found[role.Name] = role.Rules
	}
	for _, role := range every[*rbacv1.Role](t) {
		found[role.Name] = role.Rules
	}
	return found
}

func allows(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
	})
}
