package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// fromKueue takes from Kueue's own configuration, whose Go type is given, what Ferry has a use for. Both name their
// fields alike, so what Kueue accepts is decoded as ours, and the fields that we lack are those to leave out.
func fromKueue(document []byte, content map[string]any, kueue reflect.Type, known []string) (*Configuration, []string, error) {
	found := compare(nil, content, kueue)
	found.unknown = slices.DeleteFunc(found.unknown, func(u unknownField) bool {
		return strings.HasPrefix(u.path.String(), "multiKueue.clusterProfile.") // Kueue's Go type of a plugin has no names of fields of its own
	})
	if err := found.err(); err != nil {
		return nil, nil, err
	}
	c, err := decode(document)
	if err != nil {
		return nil, nil, err
	}
	c.APIVersion = APIVersion

	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if ignored := ignoredFields(content); ignored != "" {
		note("these fields of Kueue's configuration mean nothing to Ferry and are ignored: %s", ignored)
	}
	if err := c.keepKnownFrameworks(known, note); err != nil {
		return nil, nil, err
	}
	c.keepOwnLease(note)
	c.noteNamespace(note)
	noteOrigin(c.MultiKueue.Origin, note)
	noteGate(content, note)
	c.MultiKueue.OrchestratedPreemption.Enabled, _ = gate(content, "MultiKueueOrchestratedPreemption")
	c.notePlugins(note)
	return c, notes, nil
}

// notePlugins: the plugins are in Kueue's container so far.
func (c *Configuration) notePlugins(note func(string, ...any)) {
	if len(c.MultiKueue.ClusterProfile.Providers()) > 0 {
		note("multiKueue.clusterProfile: the credential plugins run in Ferry's container; make sure that they are there")
	}
}

func ignoredFields(content map[string]any) string {
	var names []string
	for _, u := range compare(nil, content, reflect.TypeFor[Configuration]()).unknown {
		names = append(names, u.path.String())
	}
	return strings.Join(names, ", ")
}

// keepKnownFrameworks fails when none is left: the default would turn on a kind that the user did not ask for.
func (c *Configuration) keepKnownFrameworks(known []string, note func(string, ...any)) error {
	asked := c.Integrations.Frameworks
	var kept, dropped []string
	for _, name := range asked {
		if slices.Contains(known, name) {
			kept = append(kept, name)
		} else {
			dropped = append(dropped, name)
		}
	}
	if len(asked) > 0 && len(kept) == 0 {
		return fmt.Errorf("integrations.frameworks: Ferry dispatches none of %s yet: name one of %s",
			strings.Join(dropped, ", "), strings.Join(known, ", "))
	}
	if len(dropped) > 0 {
		note("integrations.frameworks: Ferry does not dispatch %s yet; left out", strings.Join(dropped, ", "))
	}
	c.Integrations.Frameworks = kept
	return nil
}

// keepOwnLease never takes the lease over, whatever its name: in Kueue's file it is Kueue's.
func (c *Configuration) keepOwnLease(note func(string, ...any)) {
	if c.LeaderElection.ResourceName != "" {
		note("leaderElection.resourceName: %s is Kueue's lease; Ferry uses %s", c.LeaderElection.ResourceName, DefaultLease)
	}
	c.LeaderElection.ResourceName = ""
}

func (c *Configuration) noteNamespace(note func(string, ...any)) {
	if c.Namespace == "" {
		note("namespace is not set: Ferry runs in, and reads the workers' kubeconfig Secrets from, %s; Kueue would take the namespace of its own pod or %s",
			DefaultNamespace, kueueconfig.DefaultNamespace)
		return
	}
	note("namespace: Ferry reads the workers' kubeconfig Secrets and keeps its lease in %s; its Role must be there", c.Namespace)
}

func noteOrigin(origin string, note func(string, ...any)) {
	if origin == kueueconfig.DefaultMultiKueueOrigin {
		note("multiKueue.origin: %q is Kueue's default, so another manager on the same workers may have it too and remove Ferry's copies; leave it out for one that is unique", origin)
	}
}

// gate is what Kueue's file says of one of its feature gates.
func gate(content map[string]any, name string) (on, set bool) {
	gates, _ := content["featureGates"].(map[string]any)
	on, set = gates[name].(bool)
	return on, set
}

func noteGate(content map[string]any, note func(string, ...any)) {
	if on, set := gate(content, "MultiKueue"); !set || on {
		note("featureGates.MultiKueue is not false here: make sure that Kueue on the manager runs with MultiKueue=false, or both dispatch the same jobs")
	}
}
