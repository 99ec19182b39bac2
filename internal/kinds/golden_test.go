package kinds_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"ferry.dev/ferry/internal/kinds"
)

var update = flag.Bool("update", false, "rewrite the golden files instead of comparing with them")

var now = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

var marks = kinds.Marks{Origin: "manager-1", Worker: "w1", Reservation: "0-1772359200"}

// TestGolden walks testdata/<group>/<Kind>/{copy,status}/<case>.*.yaml, with "core" for the group without a name:
//
//	copy/<case>.manager.yaml    the manager's job
//	copy/<case>.workload.yaml   its Workload; absent where that does not matter
//	copy/<case>.want.yaml       its copy for a worker
//	status/<case>.manager.yaml  the manager's job
//	status/<case>.worker.yaml   its copy on the worker; absent when there is none
//	status/<case>.want.yaml     the status that the manager's job gets
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*/*/*.manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		base := strings.TrimSuffix(file, ".manager.yaml")
		dir, of := filepath.Split(filepath.Dir(base))
		kind := kindOf(t, dir)
		seen[kind.Name()] = true
		t.Run(strings.TrimPrefix(base, "testdata/"), func(t *testing.T) {
			switch of {
			case "copy":
				goldenCopy(t, kind, base)
			case "status":
				goldenStatus(t, kind, base)
			default:
				t.Fatalf("folder %q: expected copy or status", of)
			}
		})
	}
	for _, kind := range kinds.All() {
		if !seen[kind.Name()] {
			t.Errorf("no golden files for %s", kind.Name())
		}
	}
}

// kindOf finds the row for testdata/<group>/<Kind>/.
func kindOf(t *testing.T, dir string) *kinds.Kind {
	t.Helper()
	parts := strings.Split(filepath.Clean(dir), string(filepath.Separator))
	name := schema.GroupKind{Group: strings.TrimPrefix(parts[1], "core"), Kind: parts[2]}.String()
	kind := kinds.NewTable(kinds.Frameworks(), customExamples...).ByName(name)
	if kind == nil {
		t.Fatalf("%s: no kind %s in the table", dir, name)
	}
	return kind
}

func goldenCopy(t *testing.T, kind *kinds.Kind, base string) {
	manager := readObject(t, base+".manager.yaml")
	before := manager.DeepCopy()
	wl := workloadOf(t, manager, base+".workload.yaml")
	got := kind.Project(manager, wl, marks)
	compare(t, base+".want.yaml", got.Object)
	mustEqual(t, "Project changed its input", manager.Object, before.Object)
	if !kinds.Ours(got) {
		t.Error("the copy does not carry our marks")
	}
	if ref, ok := kinds.CopyOf(got); !ok || ref != kinds.RefOf(manager) {
		t.Errorf("CopyOf the copy is %v, want %v", ref, kinds.RefOf(manager))
	}
}

// workloadOf is a plain Workload, or the one in the file.
func workloadOf(t *testing.T, manager *unstructured.Unstructured, file string) *kueue.Workload {
	t.Helper()
	wl := &kueue.Workload{}
	if raw, err := os.ReadFile(file); err == nil {
		if err := yaml.UnmarshalStrict(raw, wl); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	wl.Namespace, wl.Name = manager.GetNamespace(), "job-"+manager.GetName()+"-a1b2c"
	return wl
}

func goldenStatus(t *testing.T, kind *kinds.Kind, base string) {
	manager := readObject(t, base+".manager.yaml")
	var worker *unstructured.Unstructured
	if _, err := os.Stat(base + ".worker.yaml"); err == nil {
		worker = readObject(t, base+".worker.yaml")
	}
	got := kind.Reflect(manager, worker, now)
	compare(t, base+".want.yaml", got)
	after := manager.DeepCopy()
	after.Object["status"] = got
	if kind.Name() == "Job.batch" {
		mustBeLegal(t, manager, after)
	}
	if !kinds.SameStatus(after, kind.Reflect(after, worker, now.Add(time.Minute))) {
		t.Error("reflecting again after applying the status changes it once more")
	}
}

func readObject(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	json, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	obj := &unstructured.Unstructured{}
	// Unlike yaml.Unmarshal this gives whole numbers as int64, as the API server's answers do.
	if err := obj.UnmarshalJSON(json); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return obj
}

func compare(t *testing.T, file string, got map[string]any) {
	t.Helper()
	raw, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if !bytes.Equal(raw, want) {
		t.Errorf("%s differs; make golden rewrites it.\ngot:\n%s\nwant:\n%s", file, raw, want)
	}
}

func mustEqual(t *testing.T, what string, a, b map[string]any) {
	t.Helper()
	x, errX := yaml.Marshal(a)
	y, errY := yaml.Marshal(b)
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		t.Errorf("%s:\n%s\nwas:\n%s", what, x, y)
	}
}
