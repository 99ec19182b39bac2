package demo

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ferry.dev/ferry/playground/manifest"
)

// AllKinds, as a name, stands for every kind.
const AllKinds = "all"

// kind is one kind of job, with a sample in examples/.
type kind struct {
	// name is what it is asked for by, and its file in examples/kinds unless file says otherwise.
	name, file string
	// operator is who runs it on workers, "" when Kubernetes does. Its kinds are then on in Kueue.
	operator string
	// frameworks of Kueue that it needs besides.
	frameworks []string
	// serves: it is done once it is ready, and runs until it is deleted.
	serves bool
	// patience says why at first nothing is to be seen; may be empty.
	patience string
}

var kindRows = []kind{
	{name: "job", file: "job.yaml", frameworks: []string{"batch/job"}},
	{name: "cronjob", frameworks: []string{"batch/job"}, patience: "its Job comes at the next full minute"},
	{name: "jobset", operator: "jobset"},
	{name: "pytorchjob", operator: "training-operator"},
	{name: "tfjob", operator: "training-operator"},
	{name: "xgboostjob", operator: "training-operator"},
	{name: "paddlejob", operator: "training-operator"},
	{name: "jaxjob", operator: "training-operator"},
	{name: "mpijob", operator: "mpi-operator"},
	{name: "trainjob", operator: "trainer"},
	{name: "rayjob", operator: "kuberay"},
	{name: "raycluster", operator: "kuberay", serves: true},
	{name: "rayservice", operator: "kuberay", serves: true},
	{name: "appwrapper", operator: "appwrapper", frameworks: []string{"batch/job"}},
	{name: "pod", frameworks: []string{"pod"}},
	{name: "podgroup", frameworks: []string{"pod"}},
	{name: "deployment", frameworks: []string{"pod", "deployment"}, serves: true},
	{name: "statefulset", frameworks: []string{"pod", "statefulset"}, serves: true},
	{name: "leaderworkerset", operator: "lws", frameworks: []string{"pod"}, serves: true},
}

// Kinds are the names of all kinds with a sample.
func Kinds() []string {
	names := make([]string, 0, len(kindRows))
	for _, k := range kindRows {
		names = append(names, k.name)
	}
	return names
}

// choose gives the rows of the named kinds, each once, in the table's order. The error lists the names that there are.
func choose(names []string) ([]kind, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		if name != AllKinds && !slices.Contains(Kinds(), name) {
			return nil, fmt.Errorf("no sample of a kind %q: there are %s, and %q", name, strings.Join(Kinds(), ", "), AllKinds)
		}
		wanted[name] = true
	}
	var chosen []kind
	for _, k := range kindRows {
		if wanted[AllKinds] || wanted[k.name] {
			chosen = append(chosen, k)
		}
	}
	return chosen, nil
}

// needs are the operators and, besides theirs, the frameworks of Kueue without which the kinds do not run.
func needs(kinds []kind) (operators, frameworks []string) {
	for _, k := range kinds {
		if k.operator != "" && !slices.Contains(operators, k.operator) {
			operators = append(operators, k.operator)
		}
		for _, f := range k.frameworks {
			if !slices.Contains(frameworks, f) {
				frameworks = append(frameworks, f)
			}
		}
	}
	return operators, frameworks
}

// example reads a kind's sample from the repository at root, in the demo's queue.
func (k kind) example(root string) (example, error) {
	file := k.file
	if file == "" {
		file = filepath.Join("kinds", k.name+".yaml")
	}
	objects, err := manifest.File(filepath.Join(root, "examples", file))
	if err != nil {
		return example{}, err
	}
	if len(objects) == 0 {
		return example{}, fmt.Errorf("the sample of kind %s is empty: examples/%s", k.name, file)
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[demoLabel] = k.name
		o.SetLabels(labels)
	}
	return example{kind: k, objects: objects}, nil
}
