package kinds_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ferry.dev/ferry/internal/kinds"
)

// TestEditsThatKubernetesAllowsFlow: what the API servers let users change of a job that runs, by ValidateJobSpecUpdate
// and ValidateStatefulSetUpdate of Kubernetes 1.36 and the webhook of LeaderWorkerSet 0.9, and what runs differs by.
func TestEditsThatKubernetesAllowsFlow(t *testing.T) {
	template := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "example.com/new"}}}}
	for name, fields := range map[string]map[string]any{
		"Job.batch": {
			"activeDeadlineSeconds": int64(60), "backoffLimit": int64(2), "maxFailedIndexes": int64(1), "podReplacementPolicy": "Failed",
		},
		"StatefulSet.apps": {
			"replicas": int64(0), "ordinals": map[string]any{"start": int64(3)}, "template": template, "minReadySeconds": int64(5),
			"updateStrategy": map[string]any{"type": "OnDelete"}, "persistentVolumeClaimRetentionPolicy": map[string]any{"whenScaled": "Delete"},
		},
		"LeaderWorkerSet.leaderworkerset.x-k8s.io": {
			"replicas": int64(3), "rolloutStrategy": map[string]any{"type": "RollingUpdate"}, "leaderWorkerTemplate": map[string]any{"workerTemplate": template},
			"startupPolicy": "LeaderReady", "networkConfig": map[string]any{"subdomainPolicy": "UniquePerReplica"},
		},
	} {
		row := kinds.NewTable(kinds.Frameworks()).ByName(name)
		for field, value := range fields {
			t.Run(name+"/"+field, func(t *testing.T) {
				g := NewWithT(t)
				original := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{}}}}
				original.SetGroupVersionKind(row.GVK)
				original.SetName("train")
				copied := row.Project(original, workload("w"), marks)
				g.Expect(row.Flowed(original, copied)).To(BeNil(), "nothing was edited")
				g.Expect(unstructured.SetNestedField(original.Object, value, "spec", field)).To(Succeed())
				original.SetGeneration(2)
				next := row.Project(original, workload("w"), marks)
				followed := row.Flowed(original, copied)
				g.Expect(followed).NotTo(BeNil(), "the edit does not reach the copy")
				g.Expect(followed.Object["spec"]).To(Equal(next.Object["spec"]), "as in a copy made now")
				g.Expect(row.Flowed(original, followed)).To(BeNil(), "once is enough")
			})
		}
	}
}
