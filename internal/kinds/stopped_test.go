package kinds_test

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

// counts sums a counter over the elements of a list or map in the status.
func counts(field, counter string) func(map[string]any) bool {
	return func(status map[string]any) bool {
		var elements []any
		switch v := status[field].(type) {
		case []any:
			elements = v
		case map[string]any:
			for _, e := range v {
				elements = append(elements, e)
			}
		}
		sum := int64(0)
		for _, e := range elements {
			n, _, _ := unstructured.NestedInt64(e.(map[string]any), counter)
			sum += n
		}
		return sum > 0
	}
}

func isTrue(condition string) func(map[string]any) bool {
	return func(status map[string]any) bool {
		conditions, _ := status["conditions"].([]any)
		for _, c := range conditions {
			if m := c.(map[string]any); m["type"] == condition && m["status"] == "True" {
				return true
			}
		}
		return false
	}
}

// active is by what Kueue 0.19 takes a job for active (IsActive of each integration): it keeps the quota of an evicted
// job until that is false.
func active(kind string) func(map[string]any) bool {
	switch kind {
	case "JobSet.jobset.x-k8s.io":
		return counts("replicatedJobsStatus", "active")
	case "TrainJob.trainer.kubeflow.org":
		return counts("jobsStatus", "active")
	case "RayJob.ray.io":
		return func(s map[string]any) bool {
			return s["jobDeploymentStatus"] != nil && s["jobDeploymentStatus"] != "Suspended"
		}
	case "RayCluster.ray.io":
		return func(s map[string]any) bool { return s["state"] == "ready" }
	case "RayService.ray.io":
		return isTrue("Ready")
	case "AppWrapper.workload.codeflare.dev":
		return isTrue("QuotaReserved")
	case "Job.batch":
		return func(s map[string]any) bool { n, _ := s["active"].(int64); return n > 0 }
	default:
		return counts("replicaStatuses", "active")
	}
}

// TestStoppedIsInactive: what runs is active by its status, and what stopped is not, so that Kueue gives its quota back.
func TestStoppedIsInactive(t *testing.T) {
	for _, kind := range kinds.All() {
		if len(kind.ManagedBy) == 0 {
			continue
		}
		t.Run(kind.Name(), func(t *testing.T) {
			dir := filepath.Join("testdata", kind.GVK.Group, kind.GVK.Kind, "status")
			manager, worker := readObject(t, filepath.Join(dir, "running.manager.yaml")), readObject(t, filepath.Join(dir, "running.worker.yaml"))
			manager.Object["status"] = kind.Reflect(manager, worker, now)
			isActive := active(kind.Name())
			if !isActive(manager.Object["status"].(map[string]any)) {
				t.Fatalf("the running one is not active: %v", manager.Object["status"])
			}
			stopped := kind.Reflect(manager, nil, now)
			if isActive(stopped) {
				t.Errorf("the stopped one is active: %v", stopped)
			}
			if strings.Contains(kind.Name(), "kubeflow") && isTrue("Running")(stopped) {
				t.Errorf("its pods are taken for ready: %v", stopped)
			}
		})
	}
}
