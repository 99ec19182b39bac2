package demo

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// State is how far a job is.
type State string

// The states of a job, in the order in which it goes through them.
const (
	Submitted State = "Submitted" // Kueue has not looked at it yet
	Queued    State = "Queued"    // waits for quota on the manager
	Offered   State = "Offered"   // has quota on the manager, and waits for a worker's
	Placing   State = "Placing"   // a worker has it; it has not started there yet
	Running   State = "Running"
	Ready     State = "Ready" // serves, and goes on until it is deleted
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// Row is one line of the table: a job as the manager shows it.
type Row struct {
	Job, Workload string
	State         State
	Worker        string // "" while no worker has it
	Progress      string // pods that succeeded of those wanted, or what a kind counts
	Why           string // why it does not run yet, or why it failed
}

func (s State) over() bool { return s == Succeeded || s == Failed || s == Ready }

// Over tells whether the job has come to where the demo waits for it: it is finished, or serves.
func (r Row) Over() bool { return r.State.over() }

// rowOf reads the manager's Job and its Workload, which may be nil.
func rowOf(job *batchv1.Job, wl *kueue.Workload) Row {
	r := Row{Job: job.Name, State: Submitted, Progress: completions(job)}
	if wl != nil {
		r.Workload = wl.Name
		r.State, r.Why = dispatched(wl)
		if wl.Status.ClusterName != nil {
			r.Worker = *wl.Status.ClusterName
		}
	}
	// No pod may be active for a moment, between two rounds or retries; the start time stays until the job is suspended.
	if r.State == Placing && job.Status.StartTime != nil {
		r.State, r.Why = Running, ""
	}
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			r.State, r.Why = Succeeded, ""
		case c.Type == batchv1.JobFailed:
			r.State, r.Why = Failed, c.Message
		}
	}
	return r
}

// dispatched says how far a Workload is on its way to a worker.
func dispatched(wl *kueue.Workload) (State, string) {
	state, why := waiting(wl)
	if wl.Status.ClusterName != nil {
		state = Placing
	}
	return state, why
}

// waiting says who the Workload waits for, in the words of the manager's own objects.
func waiting(wl *kueue.Workload) (State, string) {
	reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	switch {
	case reserved == nil:
		return Submitted, ""
	case reserved.Status != metav1.ConditionTrue:
		return Queued, brief(reserved.Message)
	}
	for _, c := range wl.Status.AdmissionChecks {
		if string(c.Name) == check {
			return Offered, c.Message
		}
	}
	return Offered, ""
}

// brief leaves out how Kueue begins when quota is lacking: what is lacking comes last, where a narrow terminal cuts.
func brief(message string) string {
	if rest, found := strings.CutPrefix(message, "couldn't assign flavors to pod set "); found {
		if _, lacking, found := strings.Cut(rest, ": "); found {
			return lacking
		}
	}
	return message
}

func completions(job *batchv1.Job) string {
	want := int32(1)
	if job.Spec.Completions != nil {
		want = *job.Spec.Completions
	}
	text := fmt.Sprintf("%d/%d", job.Status.Succeeded, want)
	if job.Status.Failed > 0 {
		text += fmt.Sprintf(" (%d failed)", job.Status.Failed)
	}
	return text
}
