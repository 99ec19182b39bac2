package demo

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(g Gomega, text string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	json, err := yaml.YAMLToJSONStrict([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.UnmarshalJSON(json)).To(Succeed())
	return o
}

// TestSee shows what the kinds write, in the words of their controllers.
func TestSee(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		serves bool
		want   seen
	}{
		"nothing yet":          {object: `{kind: JobSet, spec: {suspend: true}}`},
		"suspended":            {object: `{kind: JobSet, status: {conditions: [{type: Suspended, status: "True", message: no}]}}`},
		"Job between rounds":   {object: `{kind: Job, status: {startTime: x, active: 0}}`, want: seen{state: Running}},
		"Job at work":          {object: `{kind: Job, status: {startTime: x, active: 2, succeeded: 1}}`, want: seen{Running, "2 active, 1 succeeded", ""}},
		"Job complete":         {object: `{kind: Job, status: {succeeded: 3, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`, want: seen{Succeeded, "3 succeeded", ""}},
		"Job failed":           {object: `{kind: Job, status: {failed: 2, conditions: [{type: Failed, status: "True", message: limit}]}}`, want: seen{Failed, "2 failed", "limit"}},
		"CronJob with a Job":   {object: `{kind: CronJob, status: {active: [{name: a}]}}`, want: seen{state: Running}},
		"CronJob after a Job":  {object: `{kind: CronJob, status: {lastSuccessfulTime: x}}`, want: seen{state: Succeeded}},
		"JobSet at work":       {object: `{kind: JobSet, status: {replicatedJobsStatus: [{name: a, active: 1}, {name: b, active: 2, succeeded: 1}]}}`, want: seen{Running, "3 active, 1 succeeded", ""}},
		"JobSet completed":     {object: `{kind: JobSet, status: {terminalState: Completed, conditions: [{type: Completed, status: "True"}]}}`, want: seen{state: Succeeded}},
		"training job at work": {object: `{kind: TFJob, status: {startTime: x, conditions: [{type: Created, status: "True"}, {type: Running, status: "True"}], replicaStatuses: {Chief: {active: 1}, Worker: {active: 2}}}}`, want: seen{Running, "3 active", ""}},
		"training job created": {object: `{kind: TFJob, status: {startTime: x, conditions: [{type: Created, status: "True"}]}}`},
		"training job ended":   {object: `{kind: TFJob, status: {conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True"}]}}`, want: seen{state: Succeeded}},
		"TrainJob at work":     {object: `{kind: TrainJob, status: {jobsStatus: [{name: node, active: 1}]}}`, want: seen{Running, "1 active", ""}},
		"RayJob at work":       {object: `{kind: RayJob, status: {jobStatus: RUNNING, jobDeploymentStatus: Running}}`, want: seen{state: Running}},
		"RayJob initializes":   {object: `{kind: RayJob, status: {jobDeploymentStatus: Initializing}}`},
		"RayJob failed":        {object: `{kind: RayJob, status: {jobStatus: FAILED, jobDeploymentStatus: Complete, message: oh}}`, want: seen{state: Failed, why: "oh"}},
		"RayJob succeeded":     {object: `{kind: RayJob, status: {jobStatus: SUCCEEDED, jobDeploymentStatus: Complete, message: fine}}`, want: seen{state: Succeeded}},
		"AppWrapper suspended": {object: `{kind: AppWrapper, status: {phase: Suspended}}`},
		"AppWrapper succeeded": {object: `{kind: AppWrapper, status: {phase: Succeeded}}`, want: seen{state: Succeeded}},
		"Pod is gated":         {object: `{kind: Pod, status: {phase: Pending}}`},
		"Pod runs":             {object: `{kind: Pod, status: {phase: Running, startTime: x}}`, want: seen{state: Running}},

		"RayCluster starts":        {object: `{kind: RayCluster, status: {desiredWorkerReplicas: 1}}`, serves: true, want: seen{progress: "0/1 ready"}},
		"RayCluster ready":         {object: `{kind: RayCluster, status: {state: ready, desiredWorkerReplicas: 1, readyWorkerReplicas: 1}}`, serves: true, want: seen{Ready, "1/1 ready", ""}},
		"RayCluster lost a worker": {object: `{kind: RayCluster, status: {state: ready, desiredWorkerReplicas: 2, readyWorkerReplicas: 1}}`, serves: true, want: seen{Running, "1/2 ready", ""}},
		"RayCluster suspended":     {object: `{kind: RayCluster, status: {state: suspended}}`, serves: true},
		"RayService serves":        {object: `{kind: RayService, status: {serviceStatus: Running}}`, serves: true, want: seen{state: Ready}},
		"StatefulSet starts":       {object: `{kind: StatefulSet, spec: {replicas: 3}, status: {readyReplicas: 2}}`, serves: true, want: seen{Running, "2/3 ready", ""}},
		"StatefulSet ready":        {object: `{kind: StatefulSet, spec: {replicas: 3}, status: {readyReplicas: 3}}`, serves: true, want: seen{Ready, "3/3 ready", ""}},
		"Deployment not looked at": {object: `{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1, readyReplicas: 3}}`, serves: true, want: seen{progress: "3/3 ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(see(object(g, c.object), c.serves)).To(Equal(c.want))
		})
	}
}
