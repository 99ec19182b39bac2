package kinds_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// TestNothingOfTheManagersFlavorsReachesAWorker: of every kind, the copy of a job that Kueue on the manager has started
// is the copy of that job as it was submitted, whatever flavors, queues and admission checks the manager has.
func TestNothingOfTheManagersFlavorsReachesAWorker(t *testing.T) {
	files, err := filepath.Glob("../../examples/kinds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "testdata/batch/Job/copy/plain.manager.yaml") {
		job := readSample(t, file)
		kind := kinds.NewTable(kinds.Frameworks()).ByName(kinds.RefOf(job).Kind)
		if kind == nil || kind.Pods {
			continue // of these Kueue starts the pods one by one
		}
		t.Run(kind.Name(), func(t *testing.T) {
			wl := &kueue.Workload{}
			wl.Name = "wl"
			for _, own := range []bool{false, true} {
				before, started := job.DeepCopy(), job.DeepCopy()
				wl.Spec.PodSets, wl.Status.AdmissionChecks = nil, nil
				for i, template := range templatesOf(started.Object) {
					name := fmt.Sprintf("set-%d", i)
					if own {
						ownScheduling(template)
						ownScheduling(templatesOf(before.Object)[i])
					}
					wl.Spec.PodSets = append(wl.Spec.PodSets, podSetOf(t, name, template))
					wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, kueue.AdmissionCheckState{PodSetUpdates: []kueue.PodSetUpdate{checkUpdate(name)}})
					if kind.Name() != "AppWrapper.workload.codeflare.dev" {
						start(template, name)
					}
				}
				startElsewhere(started)
				mustEqual(t, "the copy of the started job is", kind.Project(started, wl, marks).Object, kind.Project(before, wl, marks).Object)
			}
		})
	}
}

func readSample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	job := readObject(t, file)
	if job.GetKind() == "RayJob" {
		_ = unstructured.SetNestedMap(job.Object, map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "submit"}}}}, "spec", "submitterPodTemplate")
	}
	return job
}

// templatesOf are all pod templates in an object, and the object itself if it is a pod.
func templatesOf(at any) []map[string]any {
	var found []map[string]any
	switch v := at.(type) {
	case map[string]any:
		if spec, _ := v["spec"].(map[string]any); spec["containers"] != nil {
			found = append(found, v)
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, templatesOf(v[key])...)
		}
	case []any:
		for _, element := range v {
			found = append(found, templatesOf(element)...)
		}
	}
	return found
}

func podSetOf(t *testing.T, name string, template map[string]any) kueue.PodSet {
	t.Helper()
	set := kueue.PodSet{Name: kueue.PodSetReference(name), Count: 1}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &set.Template); err != nil {
		t.Fatal(err)
	}
	return set
}

func checkUpdate(name string) kueue.PodSetUpdate {
	return kueue.PodSetUpdate{
		Name: kueue.PodSetReference(name), Labels: map[string]string{"example.com/budget": "a"}, Annotations: map[string]string{"example.com/request": "r"},
		NodeSelector: map[string]string{"example.com/zone": "z"}, Tolerations: []corev1.Toleration{{Key: "example.com/zone", Operator: corev1.TolerationOpExists}},
	}
}

// ownScheduling is what a user may ask for himself.
func ownScheduling(template map[string]any) {
	t := &unstructured.Unstructured{Object: template}
	set(t, map[string]any{"disk": "ssd"}, "spec", "nodeSelector")
	set(t, []any{map[string]any{"key": "mine", "operator": "Exists"}}, "spec", "tolerations")
	add(t, "labels", "app", "mine")
	add(t, "annotations", "note", "mine")
}

// start is what Kueue merges into a template, of its flavor, its queues and the checks' updates.
func start(template map[string]any, name string) {
	t := &unstructured.Unstructured{Object: template}
	selector, _, _ := unstructured.NestedMap(template, "spec", "nodeSelector")
	if selector == nil {
		selector = map[string]any{}
	}
	selector["pool"], selector["example.com/zone"] = "of-the-manager", "z"
	set(t, selector, "spec", "nodeSelector")
	tolerations, _, _ := unstructured.NestedSlice(template, "spec", "tolerations")
	set(t, append(tolerations, map[string]any{"key": "pool", "operator": "Equal", "value": "of-the-manager", "effect": "NoSchedule"},
		map[string]any{"key": "example.com/zone", "operator": "Exists"}), "spec", "tolerations")
	gates, _, _ := unstructured.NestedSlice(template, "spec", "schedulingGates")
	set(t, append(gates, map[string]any{"name": kueue.TopologySchedulingGate}), "spec", "schedulingGates")
	for label, value := range map[string]string{"podset": name, "local-queue-name": "q", "cluster-queue-name": "cq"} {
		add(t, "labels", "kueue.x-k8s.io/"+label, value)
	}
	add(t, "labels", "example.com/budget", "a")
	for _, annotation := range []string{"kueue.x-k8s.io/workload", "kueue.x-k8s.io/workload-slice-name", "kueue.x-k8s.io/podset-unconstrained-topology", "example.com/request"} {
		add(t, "annotations", annotation, "r")
	}
}

// startElsewhere is what Kueue writes for kinds that have a place for it.
func startElsewhere(job *unstructured.Unstructured) {
	switch job.GetKind() {
	case "TrainJob":
		set(job, []any{map[string]any{"manager": "kueue.x-k8s.io/manager"}}, "spec", "runtimePatches")
	case "AppWrapper":
		components, _, _ := unstructured.NestedSlice(job.Object, "spec", "components")
		for _, c := range components {
			c.(map[string]any)["podSetInfos"] = []any{map[string]any{"nodeSelector": map[string]any{"pool": "of-the-manager"}}}
		}
		set(job, components, "spec", "components")
	}
}

func set(t *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(t.Object, value, path...); err != nil {
		panic(err)
	}
}

func add(t *unstructured.Unstructured, field, key, value string) {
	set(t, value, "metadata", field, key)
}

// TestAFurtherSliceIsAsSubmitted: Kueue on the manager makes it from the job that runs there.
func TestAFurtherSliceIsAsSubmitted(t *testing.T) {
	job := readObject(t, "testdata/batch/Job/copy/plain.manager.yaml")
	template := templatesOf(job.Object)[0]
	ownScheduling(template)
	first, further := workload("first"), workload("further")
	first.Spec.PodSets = []kueue.PodSet{podSetOf(t, "main", template)}
	start(template, "main")
	further.Spec.PodSets = []kueue.PodSet{podSetOf(t, "main", template)}
	further.Spec.PodSets[0].Count = 7
	seen := further.DeepCopy()

	got := kinds.AsSubmitted(further, []*kueue.Workload{further, first})
	if !equality.Semantic.DeepEqual(got.Spec.PodSets[0].Template, first.Spec.PodSets[0].Template) || got.Spec.PodSets[0].Count != 7 {
		t.Errorf("the further slice has %+v", got.Spec.PodSets[0])
	}
	if !equality.Semantic.DeepEqual(further, seen) {
		t.Error("AsSubmitted changed its input")
	}
	if kinds.AsSubmitted(first, []*kueue.Workload{further}) != first {
		t.Error("the first slice is as it was submitted")
	}
	lean := first.DeepCopy()
	lean.Spec.PodSets[0].Template = corev1.PodTemplateSpec{} // as copies are cached
	if kinds.AsSubmitted(further, []*kueue.Workload{lean}) != further {
		t.Error("a template that is left out of the cache is none")
	}
	if kinds.AsSubmitted(further, nil) != further {
		t.Error("without an earlier slice nobody knows better")
	}
}
