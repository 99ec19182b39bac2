package playground

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations on pods (for a Job: on its pod template) that direct the fake nodes.
const (
	// RunForAnnotation is how long a pod that is meant to end runs, as a Go duration.
	RunForAnnotation = "playground.ferry.dev/run-for"
	// FailAnnotation "true" makes the pod fail with exit code 1 at the end of that time.
	FailAnnotation = "playground.ferry.dev/fail"
)

// Labels on nodes: the cluster that one is in, and where in its data center. Two nodes share a rack, two racks a block.
const (
	ClusterLabel = "playground.ferry.dev/cluster"
	BlockLabel   = "playground.ferry.dev/block"
	RackLabel    = "playground.ferry.dev/rack"
)

//go:embed stages.yaml
var stages string

var stagesTemplate = template.Must(template.New("stages").Delims("<<", ">>").Funcs(template.FuncMap{
	"succeeded": podEnd("Succeeded", "PodCompleted", "Completed", 0),
	"failed":    podEnd("Failed", "PodFailed", "Error", 1),
	"stopped":   podEnd("Failed", "PodFailed", "Error", 143), // 128 + SIGTERM
}).Parse(stages))

// podEnd is one way for a pod to end: its phase, why it is not ready any more, and how its containers ended.
func podEnd(phase, condition, reason string, code int) func() map[string]any {
	return func() map[string]any {
		return map[string]any{"phase": phase, "condition": condition, "reason": reason, "code": code}
	}
}

// startNodes makes fake nodes and the kwok process that plays them and their pods.
func (c *Cluster) startNodes(ctx context.Context) error {
	config, err := renderStages(c.p.options.JobRunsFor)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.file("kwok.yaml"), config, 0o644); err != nil {
		return fmt.Errorf("write kwok's config: %w", err)
	}
	kwok, err := c.run("kwok",
		"--kubeconfig="+c.file("pki", "kwok.kubeconfig"), "--config="+c.file("kwok.yaml"),
		"--manage-all-nodes", "--node-lease-duration-seconds=40",
	)
	if err != nil {
		return err
	}
	for i := range c.p.options.NodesPerWorker {
		if err := c.create(ctx, fakeNode(c.Name, i)); err != nil {
			return err
		}
	}
	return await(ctx, kwok.Name(), c.nodesReady, kwok, c.apiserver)
}

func renderStages(runFor time.Duration) ([]byte, error) {
	var out bytes.Buffer
	err := stagesTemplate.Execute(&out, map[string]any{
		"RunForMilliseconds": runFor.Milliseconds(), "RunFor": RunForAnnotation, "Fail": FailAnnotation,
	})
	if err != nil {
		return nil, fmt.Errorf("fill in the stages of kwok: %w", err)
	}
	return out.Bytes(), nil
}

// fakeNode is the node of a cluster with this number, from 0.
func fakeNode(cluster string, number int) *corev1.Node {
	name := fmt.Sprintf("%s-node-%d", cluster, number+1)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1000"),
		corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods:   resource.MustParse("10000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", ClusterLabel: cluster,
				BlockLabel: fmt.Sprintf("%s-block-%d", cluster, number/4+1), RackLabel: fmt.Sprintf("%s-rack-%d", cluster, number/2+1),
			},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

func (c *Cluster) nodesReady(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.client.List(ctx, &nodes, &client.ListOptions{}); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if !usable(n) {
			return fmt.Errorf("node %s is not ready or tainted", n.Name)
		}
	}
	return nil
}

func usable(n corev1.Node) bool {
	if len(n.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
