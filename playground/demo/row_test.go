package demo

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func reserved(status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: status, Message: message}
}

func workload(c metav1.Condition, cluster *string, why string) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "w"},
		Status: kueue.WorkloadStatus{
			Conditions: []metav1.Condition{c}, ClusterName: cluster,
			AdmissionChecks: []kueue.AdmissionCheckState{{Name: "other", Message: "no"}, {Name: check, Message: why}},
		},
	}
}

func TestRowOf(t *testing.T) {
	started := ptr.To(metav1.NewTime(time.Unix(1, 0)))
	ended := func(kind batchv1.JobConditionType) batchv1.JobStatus {
		return batchv1.JobStatus{StartTime: started, Failed: 2, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, Message: "resumed"},
			{Type: kind, Status: corev1.ConditionTrue, Message: "limit"},
		}}
	}
	yes := reserved(metav1.ConditionTrue, "ok")
	for name, c := range map[string]struct {
		status batchv1.JobStatus
		wl     *kueue.Workload
		want   Row
	}{
		"new": {want: Row{State: Submitted, Progress: "0/3"}},
		"no quota": {
			wl:   workload(reserved(metav1.ConditionFalse, "couldn't assign flavors to pod set main: 1 more needed"), nil, "no"),
			want: Row{State: Queued, Progress: "0/3", Why: "1 more needed"},
		},
		"no room": {
			wl:   workload(yes, nil, "Offered to w1"),
			want: Row{State: Offered, Progress: "0/3", Why: "Offered to w1"},
		},
		"claimed": {
			wl:   workload(yes, ptr.To("w2"), `Placing the job on "w2"`),
			want: Row{State: Placing, Worker: "w2", Progress: "0/3", Why: `Placing the job on "w2"`},
		},
		"between two rounds": {
			status: batchv1.JobStatus{StartTime: started, Succeeded: 1},
			wl:     workload(yes, ptr.To("w2"), "admitted"),
			want:   Row{State: Running, Worker: "w2", Progress: "1/3"},
		},
		"failed": {
			status: ended(batchv1.JobFailed),
			wl:     workload(yes, ptr.To("w1"), "admitted"),
			want:   Row{State: Failed, Worker: "w1", Progress: "0/3 (2 failed)", Why: "limit"},
		},
		"complete": {
			status: ended(batchv1.JobComplete),
			wl:     workload(yes, ptr.To("w1"), "admitted"),
			want:   Row{State: Succeeded, Worker: "w1", Progress: "0/3 (2 failed)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: batchv1.JobSpec{Completions: ptr.To[int32](3)}, Status: c.status}
			c.want.Job = "j"
			if c.wl != nil {
				c.want.Workload = "w"
			}
			g.Expect(rowOf(job, c.wl)).To(Equal(c.want))
			g.Expect(c.want.Over()).To(Equal(name == "failed" || name == "complete"))
		})
	}
}

// TestSamplesMakeJobsWait: the demo shows waiting on the manager and on workers only while the samples exceed the quotas.
func TestSamplesMakeJobsWait(t *testing.T) {
	g := NewWithT(t)
	var sum, largest float64
	for _, s := range samples {
		job := s.job()
		cpu := job.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64() * float64(*job.Spec.Parallelism)
		sum, largest = sum+cpu, max(largest, cpu)
		g.Expect(job.Name).To(BeEmpty(), "a second demo must not meet the first one's names")
		g.Expect(job.GenerateName).To(HavePrefix(s.name))
	}
	g.Expect(sum).To(BeNumerically(">", 16), "all fit on the manager at once")
	g.Expect(largest).To(BeNumerically("<=", 8), "one fits on no worker")
}
