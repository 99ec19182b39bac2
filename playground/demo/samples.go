package demo

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"ferry.dev/ferry/playground"
)

const (
	queueLabel = "kueue.x-k8s.io/queue-name"
	// demoLabel marks the jobs that the next demo may remove.
	demoLabel = "ferry.dev/demo"
)

// sample is one Job of the demo.
type sample struct {
	name                     string
	completions, parallelism int32
	cpu                      string // of each pod
	runsFor                  time.Duration
	indexed, fails           bool
}

// samples do not fit all at once. The manager's queue has room for 16 CPUs, each worker's for 8: what exceeds the former
// waits on the manager, and the third of three large jobs is offered to workers that have no room for it yet.
var samples = []sample{
	{name: "hello", completions: 1, parallelism: 1, cpu: "500m", runsFor: 3 * time.Second},
	{name: "train", completions: 5, parallelism: 5, cpu: "1", runsFor: 8 * time.Second},
	{name: "simulate", completions: 5, parallelism: 5, cpu: "1", runsFor: 6 * time.Second},
	{name: "import", completions: 8, parallelism: 4, cpu: "1", runsFor: 2 * time.Second},
	{name: "broken", completions: 1, parallelism: 1, cpu: "500m", runsFor: time.Second, fails: true},
	{name: "render", completions: 6, parallelism: 2, cpu: "1", runsFor: 2 * time.Second, indexed: true},
	{name: "report", completions: 1, parallelism: 1, cpu: "2", runsFor: 4 * time.Second},
}

// job is a new Job each time.
func (s sample) job() *batchv1.Job {
	mode := batchv1.NonIndexedCompletion
	if s.indexed {
		mode = batchv1.IndexedCompletion
	}
	annotations := map[string]string{playground.RunForAnnotation: s.runsFor.String()}
	if s.fails {
		annotations[playground.FailAnnotation] = "true"
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: s.name + "-",
			Labels: map[string]string{queueLabel: queue, demoLabel: s.name},
		},
		Spec: batchv1.JobSpec{
			Completions: &s.completions, Parallelism: &s.parallelism, CompletionMode: &mode,
			BackoffLimit: ptr.To[int32](1),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: s.name, Image: "busybox:1.37",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse(s.cpu), corev1.ResourceMemory: resource.MustParse("64Mi"),
						}},
					}},
				},
			},
		},
	}
}
