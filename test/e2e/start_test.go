package e2e_test

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/reason"
	"ferry.dev/ferry/test/fixtures"
)

// TestUsersReadWhyAPlacedJobDoesNotStart: what a job names may be on no worker.
func TestUsersReadWhyAPlacedJobDoesNotStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-here"}, Value: 1000}
	s.Expect(manager().Create(s.ctx, class)).To(Succeed())
	gpu := "gpu"
	jobs := map[string]struct {
		change func(*corev1.PodSpec)
		says   string
	}{
		"no-service-account": {func(p *corev1.PodSpec) { p.ServiceAccountName = "trainer" }, `serviceaccount "trainer" not found`},
		"no-claim": {func(p *corev1.PodSpec) {
			claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "datasets"}
			p.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
			p.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "d", MountPath: "/data"}}
		}, `persistentvolumeclaim "datasets" not found`},
		"no-such-node":      {func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"example.com/accelerator": "a100"} }, "FailedScheduling"},
		"no-runtime-class":  {func(p *corev1.PodSpec) { p.RuntimeClassName = &gpu }, `"gpu" not found`},
		"no-priority-class": {func(p *corev1.PodSpec) { p.PriorityClassName = class.Name }, "no PriorityClass with name " + class.Name},
	}
	for name, j := range jobs {
		s.submit(name, fixtures.CPU("100m"), func(job *batchv1.Job) { j.change(&job.Spec.Template.Spec) })
	}
	for name, j := range jobs {
		s.awaitMessage(name, "The workload was admitted on", "none of its pods is ready", j.says)
		s.Expect(s.check(s, name).State).To(Equal(kueue.CheckStateReady), name)
		s.awaitEvent(s.namespace, reason.Warning, j.says)
	}
	s.submit("runs", fixtures.RunsOn())
	worker, _ := s.awaitRunning("runs")
	s.Expect(s.check(s, "runs").Message).To(Equal(reason.Admitted(worker)))
}
