// Package reason holds the words that users see: reasons and messages of conditions and events. Words for facts that MultiKueue tells too are MultiKueue's.
package reason

import (
	"fmt"
	"strings"
	"time"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Event is the reason and action of events about a Workload's dispatch.
const Event = "MultiKueue"

// longest is what the API allows for a message, in bytes.
const longest = 32 * 1024

// Fit cuts a message to what the API allows.
func Fit(message string) string { return cut(message, longest) }

// Brief cuts what somebody else wrote, such as an API server's error, to a length fit for a sentence.
func Brief(text string) string { return cut(text, 300) }

// Note cuts a message to what the API allows for an event.
func Note(message string) string { return cut(message, 1000) }

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "..."
}

// Admitted says where the job went.
func Admitted(worker string) string { return fmt.Sprintf("The workload was admitted on %q", worker) }

// GroupDeleted says why a pod group has ended.
const GroupDeleted = "All pods of the group were deleted"

// Warning is the reason of the event by which users get a worker's warning about their job.
const Warning = "WorkerWarning"

// But adds to a sentence what does not go well; nothing if trouble is empty.
func But(sentence, trouble string) string {
	if trouble == "" {
		return sentence
	}
	return sentence + "; " + strings.TrimLeft(trouble, " ")
}

// Away begins what AwaySince says.
const Away = "the worker is out of reach"

// AwaySince says since when the worker of a running job is out of reach.
func AwaySince(since time.Time) string { return Away + " since " + since.UTC().Format(time.RFC3339) }

// Before comes before what a check said when its job was sent back to the queue.
const Before = ". Before: "

// WaitsForQuota says that a job that was sent back waits for quota on the manager; why is empty if it is for its turn.
func WaitsForQuota(why, before string) string {
	return withWhy("Waiting for quota on the manager", why) + Before + before
}

// NoAdapter says that the owner's kind is not dispatched; kind as GroupVersionKind prints itself.
func NoAdapter(kind string) string {
	return fmt.Sprintf("No multikueue adapter found for owner kind %q", kind)
}

// NoOwner says that nobody owns the Workload.
const NoOwner = "No multikueue adapter found"

// NotManaged says why the job is not MultiKueue's, and what to do.
func NotManaged(why string) string {
	return "The owner is not managed by Kueue: " + why + ". Set the field, or, where it cannot be changed, as in a batch Job, delete the job and create it anew"
}

// EvictedOnWorker says that the worker took the job's quota back.
func EvictedOnWorker(worker, why string) string {
	return withWhy(fmt.Sprintf("Workload evicted on worker cluster: %q, resetting for re-admission", worker), why)
}

// TimeIsUp says that the job ran for its maximum execution time.
func TimeIsUp(worker string) string {
	return fmt.Sprintf("The maximum execution time is up on worker %q; waiting for Kueue on the manager to notice it too", worker)
}

// OutOfSync says that Kueue on the worker ended the copy as unlike its job.
func OutOfSync(worker string) string {
	return fmt.Sprintf("Remote workload on worker cluster %q is out of sync with its user job, resetting for re-dispatch", worker)
}

// WorkerLost says that the job's worker stayed away for too long.
func WorkerLost(worker string) string {
	return fmt.Sprintf("Admitting remote lost: worker %q was out of reach for too long; offering the job again", worker)
}

// WorkerLeaves says that the job's worker is given up, and can still be reached.
func WorkerLeaves(worker string) string {
	return fmt.Sprintf("Worker %q is withdrawn from, as its MultiKueueCluster is being deleted or leads to another cluster now; offering the job again", worker)
}

// WorkerLeft says that the config does not name the job's worker any more.
func WorkerLeft(worker string) string {
	return fmt.Sprintf("Admitting remote lost: worker %q is no longer in the MultiKueueConfig; offering the job again", worker)
}

// WorkerBlind says that the worker could not show the job for too long.
func WorkerBlind(worker, why string) string {
	return fmt.Sprintf("Admitting remote lost: worker %q cannot show the job: %s; offering it again", worker, why)
}

// Unseen says that the job cannot be read on the manager.
func Unseen(why string) string { return "The job cannot be read: " + why }

// CopyGone says that the copy vanished from its worker.
func CopyGone(worker, what string) string {
	return fmt.Sprintf("Admitting remote no longer exists: the %s is gone from worker %q before its result was seen; offering the job again", what, worker)
}

// GoesOnWorker says that what ran there is being deleted, and may run still.
func GoesOnWorker(what, worker string) string {
	return fmt.Sprintf("The %s is being deleted on worker %q: waiting for its end", what, worker)
}

// GoneFromWorker says that what ran there was deleted there, so that it failed.
func GoneFromWorker(what, worker string) string {
	return fmt.Sprintf("The %s is gone from worker %q, and counts as failed", what, worker)
}

// WaitsThere says why Kueue on a worker has not reserved quota for a job, by the reason and the message of its condition
// QuotaReserved, in words that seldom change. Kueue has reasons of their own for these only with its gate
// UnadmittedWorkloadsObservability; without it, that there is no place in the topology can be told from its message alone.
func WaitsThere(why, message string) string {
	switch {
	case why == kueue.WorkloadQuotaReservedReasonTopologyPlacementFailed, strings.Contains(message, `: topology "`):
		return "no place in its topology"
	case why == kueue.WorkloadQuotaReservedReasonNoMatchingFlavor:
		return "no flavor of its queue fits the job's node selectors and tolerations"
	case why == kueue.WorkloadQuotaReservedReasonExceedsMaxQuota:
		return "asks for more than its queue can ever have"
	case why == kueue.WorkloadQuotaReservedReasonSuspended:
		return "its queue is stopped"
	default:
		return "waits for quota"
	}
}

// Adopting says where Ferry takes over what MultiKueue made.
func Adopting(workers string) string {
	return "Taking over what MultiKueue made on " + workers
}

// LooksUp says that a worker is asked for a copy that it does not show.
func LooksUp(worker string) string {
	return fmt.Sprintf("Worker %q shows no copy of the job; asking it once more", worker)
}

const heldBegins = "Not run again anywhere: worker "

// Held says why a job that is not seen to run is offered to nobody, and what to do.
func Held(worker, origin string) string {
	return fmt.Sprintf("%s%q may run this job, but its copy there has the multikueue-origin %q and is not known to be Ferry's; "+
		"set multiKueue.origin to that value to take it over, or delete that copy and its job", heldBegins, worker, origin)
}

// IsHeld tells such a message from others.
func IsHeld(message string) bool { return strings.HasPrefix(message, heldBegins) }

// HeldThere names such a worker in a list.
func HeldThere(worker, origin string) string {
	return fmt.Sprintf("%s (its copy has the multikueue-origin %q: delete it there, or set multiKueue.origin to that value)", worker, origin)
}

// CopyChanged says that the Workload's spec on the manager moved on.
func CopyChanged(worker string) string {
	return fmt.Sprintf("The job changed after it went to worker %q; offering it again", worker)
}

// ClaimSplit says that the Workloads of one job are not all assigned to one worker.
func ClaimSplit(worker string) string {
	return fmt.Sprintf("Not all Workloads of the job are assigned to worker %q; offering the job again", worker)
}

// CopyGoneHere is CopyGone where the worker is named already.
func CopyGoneHere(what string) string {
	return fmt.Sprintf("the %s of this job vanished there", what)
}

// OutOfSyncHere is OutOfSync where the worker is named already.
const OutOfSyncHere = "the job is changed there, so that Kueue takes it for another"

// FailedToStart says that Kueue on the worker could not start the job.
func FailedToStart(worker, why string) string {
	return withWhy(fmt.Sprintf("Kueue on worker %q could not start the job; offering it again", worker), Brief(why))
}

// FailedToStartHere is FailedToStart where the worker is named already.
func FailedToStartHere(why string) string {
	return withWhy("this job could not be started there", Brief(why))
}

// EndUnclear says that nobody knows yet what became of the job.
func EndUnclear(worker, why string) string {
	return fmt.Sprintf("Kueue on worker %q ended the workload by %q, and the job does not show its end", worker, why)
}

// OfferingAgain is the end of a sentence.
const OfferingAgain = "; offering the job again"

// EndUnclearHere is EndUnclear where the worker is named already.
func EndUnclearHere(why string) string {
	return fmt.Sprintf("the workload of this job was ended there by %q", why)
}

// Result is how the job ended, and why only the Workload says so, if that is so.
func Result(message, refused string) string {
	if refused == "" {
		return message
	}
	return Fit(fmt.Sprintf("%s (the job's status could not be written: %s)", message, refused))
}

// EvictedHere is EvictedOnWorker where the worker is named already.
func EvictedHere(why string) string { return withWhy("this job was evicted there", Brief(why)) }

// PlacingFails says that the winner is known, and what keeps the job from it.
func PlacingFails(worker, why string) string { return withWhy(Placing(worker), why) }

// NotPlaced says that a worker admitted the job and did not let it be created.
func NotPlaced(worker string, timeout time.Duration, why string) string {
	return withWhy(fmt.Sprintf("Worker %q admitted the job, which could not be placed there within %s; offering it again", worker, timeout), why)
}

// NotPlacedHere is NotPlaced where the worker is named already.
func NotPlacedHere(why string) string { return withWhy("this job could not be placed there", why) }

// KindFailsThere says why a worker is not asked to run a job although that job did not fail there.
func KindFailsThere(why string) string {
	return "jobs of this kind fail there one after the other: " + why
}

// AskedAgain says why a worker rests for a job, and until when.
func AskedAgain(why string, at time.Time) string {
	return fmt.Sprintf("%s (asked again at %s)", why, at.UTC().Format("15:04:05Z"))
}

// WithTrouble says what stands in the way of something.
func WithTrouble(what, trouble string) string {
	if trouble == "" {
		return what
	}
	return what + " (" + trouble + ")"
}

// Foreign says that somebody else's job holds the name on the worker.
func Foreign(worker string) string {
	return fmt.Sprintf("Worker %q holds an object with the job's name that Ferry did not create; offering the job to the others", worker)
}

// Refused says that the worker, once chosen, cannot take the job after all.
func Refused(worker, why string) string {
	return fmt.Sprintf("Worker %q cannot take the job: %s; offering it again", worker, why)
}

// NoClaim says that the state cannot be Ferry's doing.
const NoClaim = "Admission check is Ready but no admitting cluster is recorded; offering the job again"

// Placing says that the winner is known and the job is on its way.
func Placing(worker string) string { return fmt.Sprintf("Placing the job on %q", worker) }

// Offered says who is asked to run the job.
func Offered(to string) string { return "Offered to " + to }

// List is what a sentence has to say of several workers. It is made at every look at a job that waits.
type List struct{ strings.Builder }

// Add adds one of them.
func (l *List) Add(words ...string) {
	if l.Len() > 0 {
		l.WriteString("; ")
	}
	for _, w := range words {
		l.WriteString(w)
	}
}

// NobodyFits says why no worker is asked.
func NobodyFits(why string) string {
	if why == "" {
		why = "none is configured"
	}
	return "No worker can take the job: " + why
}

// WaitsForNomination says that another controller has to choose.
func WaitsForNomination(dispatcher string) string {
	return fmt.Sprintf("Waiting for the dispatcher %q to nominate workers", dispatcher)
}

// WaitsForChecks says which other admission checks come first.
func WaitsForChecks(names []string) string {
	return "Waiting for other admission checks: " + strings.Join(names, ", ")
}

// WaitsForSiblings says how many of a job's Workloads there are.
func WaitsForSiblings(have, want int) string {
	return fmt.Sprintf("Waiting for all Workloads of the job: %d of %d exist", have, want)
}

// WaitsForFamily says who chooses the worker for all of the job's family.
func WaitsForFamily(earlier string) string {
	return fmt.Sprintf("Waiting for %s, which belongs to the same Deployment, to get a worker", earlier)
}

// NotGated says what keeps pods from being dispatched, and what to do.
const NotGated = "Pods of the job lack the scheduling gate ferry.dev/dispatched, as they were created before their queue led to workers: delete them, so that they are made anew"

// Unfenced warns of pods that run on the manager too since Kueue there started without MultiKueue, and says what to do.
func Unfenced(worker string, set bool) string {
	what := fmt.Sprintf("delete them, and their copies on %q", worker)
	if set {
		what = "delete them on the manager, so that they are made anew with the gate"
	}
	return fmt.Sprintf("MultiKueue dispatched this job to worker %q, and its pods may run on the manager as well: they have neither the scheduling gate ferry.dev/dispatched "+
		"nor the label and nodeSelector that take its place (docs/configuration.md, Taking over what runs); %s", worker, what)
}

// RequestsNothing says why a job has no check that would send it to a worker, and what to do.
func RequestsNothing(clusterQueue string) string {
	return fmt.Sprintf("Nothing runs this job: it requests no resource that ClusterQueue %q has quota for, so Kueue admitted it without the check that sends it to a worker. "+
		"Let it request cpu or memory (a LimitRange sets defaults), or let the ClusterQueue cover the resource pods", clusterQueue)
}

// FlavorWithoutCheck says that a job got quota that does not lead to workers, though it is kept from running on the manager.
func FlavorWithoutCheck(flavors, clusterQueue string) string {
	return fmt.Sprintf("Nothing runs this job: it is left to MultiKueue, but Kueue admitted it to %s of ClusterQueue %q, without a MultiKueue check. "+
		"Let the queue's check apply to that flavor (onFlavors), or create the job anew in a queue without workers", flavors, clusterQueue)
}

// NoWorkload says that Kueue leaves a job alone that is kept from running on the manager.
func NoWorkload(kind string) string {
	return fmt.Sprintf("Nothing runs this job: it is left to MultiKueue, but Kueue has made no Workload for it. Is %s among Kueue's integrations.frameworks, "+
		"does its managedJobsNamespaceSelector select the namespace, does the job name a queue, and is it not owned by another job in a queue?", kind)
}

// LeftAlone says that a job is not dispatched although it names a queue that leads to workers.
func LeftAlone(kind, why string) string {
	return fmt.Sprintf("Ferry does not dispatch this %s, and Kueue makes no Workload for it: %s; remove its queue label", kind, why)
}

// VolumesOnManager says what a set with volume claims costs on the manager, and how to avoid it.
func VolumesOnManager(kind string) string {
	return fmt.Sprintf("The volume claims of this %s are made on the manager too, where no pod uses them. "+
		"No volume is made for them where their StorageClass on the manager has volumeBindingMode WaitForFirstConsumer", kind)
}

// WaitsForMember says why a pod that joins its group is not made yet.
func WaitsForMember(pod, worker string) string {
	return fmt.Sprintf("Pod %s waits until one that left its group has ended on %q", pod, worker)
}

// Joins says that the rest of the job runs on this worker already.
func Joins(worker string) string { return fmt.Sprintf("Joining the job on %q", worker) }

// JoinsLater says why the worker that runs the rest of the job does not take this part now.
func JoinsLater(worker, why string) string { return Joins(worker) + ": " + why }

// Grows says that a running job gets more pods, and how far Kueue on its worker is with that.
func Grows(worker, progress string) string {
	if progress != "" {
		progress = " (" + progress + ")"
	}
	return fmt.Sprintf("Growing the job on %q%s", worker, progress)
}

// WaitsForCleanup says which workers still have to remove an earlier copy.
func WaitsForCleanup(workers []string) string {
	return "Waiting for an earlier copy to go from " + strings.Join(workers, ", ")
}

func withWhy(sentence, why string) string {
	if why == "" {
		return sentence
	}
	return sentence + ": " + why
}
