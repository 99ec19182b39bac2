package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/plan"
)

// TestVolumesOnTheManagerAreSaid: of every kind with pods of its own, a set that claims volumes says once that they are
// made on the manager too; one without says nothing.
func TestVolumesOnTheManagerAreSaid(t *testing.T) {
	claims := map[string]kinds.Path{
		"StatefulSet":     {"spec", "volumeClaimTemplates"},
		"LeaderWorkerSet": {"spec", "leaderWorkerTemplate", "volumeClaimTemplates"},
	}
	ephemeral := map[string]kinds.Path{
		"StatefulSet":     {"spec", "template", "spec", "volumes"},
		"LeaderWorkerSet": {"spec", "leaderWorkerTemplate", "workerTemplate", "spec", "volumes"},
	}
	for _, k := range kinds.NewTable(kinds.Frameworks()).Rows() {
		if !k.Pods {
			continue
		}
		asks := func(path kinds.Path, value map[string]any) with {
			return managerJob(func(job *unstructured.Unstructured) {
				if err := unstructured.SetNestedSlice(job.Object, []any{value}, path...); err != nil {
					t.Fatal(err)
				}
			})
		}
		for name, c := range map[string]struct {
			when plan.Snapshot
			says bool
		}{
			"no volumes":        {snap(of(*k)), false},
			"claims":            {snap(of(*k), asks(claims[k.GVK.Kind], map[string]any{"metadata": map[string]any{"name": "data"}})), true},
			"ephemeral volumes": {snap(of(*k), asks(ephemeral[k.GVK.Kind], map[string]any{"name": "s", "ephemeral": map[string]any{}})), true},
			"other volumes":     {snap(of(*k), asks(ephemeral[k.GVK.Kind], map[string]any{"name": "s", "emptyDir": map[string]any{}})), false},
			"not ours":          {snap(of(*k), noCheck, asks(claims[k.GVK.Kind], map[string]any{})), false},
		} {
			message, says := warning(plan.Decide(c.when))
			if says != c.says {
				t.Errorf("%s, %s: says %q", k.Name(), name, message)
			}
			told(message)(&c.when)
			if _, again := warning(plan.Decide(c.when)); again {
				t.Errorf("%s, %s: says it again", k.Name(), name)
			}
		}
	}
}

func warning(p plan.Plan) (string, bool) {
	for _, a := range p.Manager {
		if w, is := a.(plan.Warn); is {
			return w.Message, true
		}
	}
	return "", false
}
