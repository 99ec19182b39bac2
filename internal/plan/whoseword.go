package plan

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

// Past is what is known of the claims on a Workload.
type Past struct {
	// From is the number of evictions from which on all claims are known.
	From int64
	// By are the workers by the reservation that they had the claim for.
	By map[string]string
}

// Evictions counts how often Kueue evicted the Workload.
func Evictions(wl *kueue.Workload) int64 {
	var n int64
	if wl.Status.SchedulingStats != nil {
		for _, e := range wl.Status.SchedulingStats.Evictions {
			n += int64(e.Count)
		}
	}
	return n
}

// mayEnd tells whether the end of a copy on a worker ends the job: the worker has the claim, or had it for the
// reservation that the copy is of. After a restart nobody knows who had an earlier claim; then a worker of the config is
// believed that shows one which Ferry can have made, lest a result is lost.
func (v *view) mayEnd(w *Worker, c *kueue.Workload) bool {
	wl := v.original(c.Name)
	if wl.Status.ClusterName != nil && *wl.Status.ClusterName == w.Name {
		return true
	}
	token := c.Annotations[kinds.ReservationAnnotation]
	past, known := v.Past[wl.UID]
	if by, claimed := past.By[token]; claimed {
		return by == w.Name
	}
	n, ok := evictionsBefore(token)
	return w.InConfig && ok && token != Reservation(wl) && n <= Evictions(wl) && (!known || n < past.From)
}

// evictionsBefore is how often the Workload had been evicted before a reservation.
func evictionsBefore(reservation string) (int64, bool) {
	count, _, found := strings.Cut(reservation, "-")
	n, err := strconv.ParseInt(count, 10, 64)
	return n, found && err == nil
}

// holdsUp is for how long the word of a worker that it still has something of the job may hold up the job. It has to be
// one that can have it: of the config, seen with the claim, or told of this very job.
func (v *view) holdsUp(w *Worker) time.Duration {
	if !w.Reachable || !(v.mayHave(w) || v.told[w.Name]) {
		return 0
	}
	since := v.stoppedSince()
	if !w.InConfig && (len(v.Workloads) == 0 || w.LostSince.After(since)) {
		since = w.LostSince
	}
	return since.Add(max(v.Policy.WorkerLostTimeout, v.Policy.FirstConnect)).Sub(v.Now)
}

// mayHave tells whether a worker can have the job: the config names it, or it was seen with the claim.
func (v *view) mayHave(w *Worker) bool { return w.InConfig || w.Name == v.claim() || w.Name == v.Host }

// noteTold notes that a worker has an object with a UID of this very job. The word of one of the config counts anyway.
func (v *view) noteTold(w *Worker, ours bool) {
	if !ours || w.InConfig {
		return
	}
	if v.told == nil {
		v.told = map[string]bool{}
	}
	v.told[w.Name] = true
}

// stoppedSince is when the job was last given or denied quota on the manager, since when nothing of before has a right to run.
func (v *view) stoppedSince() time.Time {
	var since time.Time
	for _, wl := range v.Workloads {
		for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadEvicted} {
			c := meta.FindStatusCondition(wl.Status.Conditions, condition)
			if c != nil && (condition == kueue.WorkloadQuotaReserved || c.Status == metav1.ConditionTrue) && c.LastTransitionTime.After(since) {
				since = c.LastTransitionTime.Time
			}
		}
	}
	if since.IsZero() {
		return v.Now
	}
	return since
}
