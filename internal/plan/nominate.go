package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/capacity"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/reason"
)

var nominate = Rule{
	Name: "Nominate",
	Doc:  "The placement names the workers to ask; the names are persisted, then each of them gets a copy of the Workload and Kueue there decides. One that is out of reach, or whose jobs cannot be seen for the moment, keeps what it was offered.",
	decide: func(v *view, p *Plan) bool {
		in := v.placementInput()
		out := v.placement().Nominate(in)
		p.again(out.Again)
		for i := range v.Workers {
			v.offer(p, &v.Workers[i], in.Nominated)
			p.again(v.Workers[i].AskAgain.Sub(v.Now))
			for _, c := range v.Workers[i].Workloads {
				p.again(v.restLeft(c))
			}
		}
		v.openGates(p, in.Nominated)
		if len(out.Nominate) == 0 && len(in.Nominated) == 0 && v.connecting(p) {
			p.Because = "The workers are being connected to"
			return true
		}
		message := reason.Fit(v.offerMessage(out.Nominate))
		v.warnOfWish(p)
		p.Because = message
		if slices.Equal(out.Nominate, in.Nominated) {
			if !v.flaps(p) {
				v.say(p, message)
			}
			return true
		}
		for _, wl := range v.Workloads {
			if slices.Equal(out.Nominate, wl.Status.NominatedClusterNames) {
				continue
			}
			p.manager(Nominate{Workload: wl, Check: v.Check, Workers: out.Nominate, Message: message})
		}
		return true
	},
}

// connecting tells whether a worker may be reachable in a moment, as after a
// restart of Ferry: to say that nobody can take the job would be rash.
func (v *view) connecting(p *Plan) bool {
	for _, w := range v.Workers {
		if left := w.LostSince.Add(connectsIn).Sub(v.Now); w.InConfig && !w.Reachable && left > 0 {
			p.again(left)
			return true
		}
	}
	return false
}

// connectsIn is how long a first connection usually takes at most.
const connectsIn = 5 * time.Second

// lasts is how long a worker has to be out of reach until jobs that wait tell of it.
const lasts = time.Minute

// flaps tells whether a worker of the config is out of reach, not for long yet. To say so
// would be a write for each job that waits and was told why, and another one when the
// worker is back; until it lasts, only the MultiKueueCluster says it.
func (v *view) flaps(p *Plan) bool {
	if v.any(func(wl *kueue.Workload) bool { c := v.check(wl); return c == nil || c.Message == "" }) {
		return false
	}
	flaps := false
	for _, w := range v.Workers {
		if left := w.LostSince.Add(lasts).Sub(v.Now); w.InConfig && !w.Reachable && left > 0 {
			p.again(left)
			flaps = true
		}
	}
	return flaps
}

// eligible tells whether a worker could take the job now.
func (v *view) eligible(w *Worker) bool { return v.couldServe(w) && len(v.stale[w.Name]) == 0 }

// couldServe: nothing stands in the way but perhaps an earlier copy on its way out.
func (v *view) couldServe(w *Worker) bool {
	return w.Reachable && w.Serves && !w.Foreign && v.isWanted(w)
}

// isWanted: the config names the worker, nobody gives it up, and no filter leaves it out.
func (v *view) isWanted(w *Worker) bool {
	return w.InConfig && !w.Leaving && placement.Excludes(w.Name, w.Facts, v.Wish) == ""
}

func (v *view) placementInput() placement.Input {
	first := v.Workloads[0]
	in := placement.Input{Now: v.Now, Nominated: v.nominees(), Of: v.candidate}
	if c := v.check(first); c != nil {
		in.NominatedAt = c.LastTransitionTime.Time
	}
	in.Eligible, in.Kept = make([]string, 0, len(v.Workers)), make([]string, 0, len(in.Nominated))
	for i := range v.Workers {
		if w := &v.Workers[i]; v.eligible(w) {
			in.Eligible = append(in.Eligible, w.Name)
		}
	}
	for _, name := range in.Nominated {
		if w := v.find(name); w != nil && (v.couldServe(w) || (!w.Reachable && v.isWanted(w)) || v.mayBeBack(w)) {
			in.Kept = append(in.Kept, name)
		}
	}
	return in
}

// candidate is what Best knows of a worker.
func (v *view) candidate(name string) placement.Candidate {
	w := v.find(name)
	if w == nil {
		return placement.Candidate{Fit: capacity.Fit{Class: capacity.Unknown}}
	}
	return placement.Candidate{
		Fit: w.Fit, Preferred: v.Wish.Preferred(w.Facts), RanThere: v.ranOn(name),
		Reserved: slices.ContainsFunc(w.Workloads, func(c *kueue.Workload) bool { return isTrue(c, kueue.WorkloadQuotaReserved) }),
	}
}

// ranOn tells whether the job is known to have been on a worker before.
func (v *view) ranOn(worker string) bool {
	for _, by := range v.Past[v.Workloads[0].UID].By {
		if by == worker {
			return true
		}
	}
	return false
}

// goesByFit tells whether the placement compares what the workers' queues have.
func (v *view) goesByFit() bool {
	_, is := v.Policy.Placement.(placement.Best)
	return is
}

// mayBeBack tells whether the worker keeps what it was offered, and so its place in the queue there, though its
// jobs cannot be seen for the moment: they are read again after a reconnect, or their watch failed.
func (v *view) mayBeBack(w *Worker) bool {
	return w.Reachable && w.Blind && v.isWanted(w) && w.AskAgain.IsZero() && v.graceLeft(w) > 0
}

// nominees are the workers for which the nomination of every Workload is persisted.
func (v *view) nominees() []string {
	all := v.Workloads[0].Status.NominatedClusterNames
	names := make([]string, 0, len(all))
	for _, name := range all {
		if nominates(v.Workloads[1:], name) {
			names = append(names, name)
		}
	}
	return names
}

func (v *view) isNominee(worker string) bool {
	return nominates(v.Workloads, worker)
}

// nominates tells whether the worker is nominated for each of them.
func nominates(wls []*kueue.Workload, worker string) bool {
	return !slices.ContainsFunc(wls, func(wl *kueue.Workload) bool { return !slices.Contains(wl.Status.NominatedClusterNames, worker) })
}

// offer makes the copies on a worker whose nomination is persisted, and removes them from any other.
func (v *view) offer(p *Plan, w *Worker, nominees []string) {
	isNominee := slices.Contains(nominees, w.Name)
	switch {
	case isNominee && v.mayBeBack(w):
		p.again(v.graceLeft(w))
		return
	case !isNominee, !v.eligible(w):
		v.removeFrom(p, w)
		return
	}
	for _, wl := range v.Workloads {
		if !slices.ContainsFunc(w.Workloads, func(c *kueue.Workload) bool { return c.Name == wl.Name }) {
			v.copyTo(p, w, wl)
		}
	}
	v.followPriority(p, w)
	v.shrink(p, w)
}

// copyTo makes the copy of a Workload on a worker, once nothing of an earlier
// reservation is left there: that may have the same name, and has to go first.
func (v *view) copyTo(p *Plan, w *Worker, wl *kueue.Workload) {
	if len(v.stale[w.Name]) == 0 && !v.rests(p, w) {
		c := kinds.AsSubmitted(kinds.ProjectWorkload(wl, v.Ref, v.marks(w, wl)), v.earlier(w))
		if v.PreemptionTimeout > 0 && v.claim() == "" {
			c.Spec.PreemptionGates = []kueue.PreemptionGate{{Name: kinds.PreemptionGate}}
		}
		p.worker(w.Name, CreateWorkload{Copy: c, ClusterQueue: clusterQueue(wl)})
	}
}

// rests: the worker refused something of the job, and is asked for nothing new for a while.
func (v *view) rests(p *Plan, w *Worker) bool {
	left := w.AskAgain.Sub(v.Now)
	p.again(left)
	return left > 0
}

// clusterQueue is empty for a finished Workload that gave its quota back.
func clusterQueue(wl *kueue.Workload) kueue.ClusterQueueReference {
	if wl.Status.Admission == nil {
		return ""
	}
	return wl.Status.Admission.ClusterQueue
}

// warnOfWish tells users, once, that what they or their administrators say of where the job may go lets it go nowhere.
func (v *view) warnOfWish(p *Plan) {
	if trouble := v.wishTrouble(); trouble != "" {
		v.warn(p, trouble)
	}
}

func (v *view) wishTrouble() string {
	if v.Wish.Trouble != "" || !v.Wish.Restricts() {
		return v.Wish.Trouble
	}
	var names []string
	for i := range v.Workers {
		if v.Workers[i].InConfig {
			names = append(names, v.Workers[i].Name)
		}
	}
	if demands := v.Wish.MeetsNobody(names, func(name string) placement.Facts { return v.find(name).Facts }); demands != "" {
		return reason.MeetsNobody(demands, names)
	}
	return ""
}

// offerMessage tells worker by worker why the job waits.
func (v *view) offerMessage(nominees []string) string {
	var asked, skipped reason.List
	open := false
	for i := range v.Workers {
		w := &v.Workers[i]
		switch {
		case slices.Contains(nominees, w.Name):
			v.addAsked(&asked, w)
		case v.eligible(w) && v.goesByFit():
			skipped.Add(w.Name, ": ", reason.Fits(w.Fit))
		case v.eligible(w):
			open = true
		case w.InConfig:
			skipped.Add(w.Name, ": ", v.obstacle(w))
		}
	}
	switch {
	case asked.Len() > 0:
		if skipped.Len() > 0 {
			asked.Add("skipped ", skipped.String())
		}
		return reason.Offered(asked.String())
	case open:
		return reason.WaitsForNomination(v.Policy.Dispatcher)
	case v.Wish.Trouble != "":
		return v.Wish.Trouble
	default:
		return reason.NobodyFits(skipped.String())
	}
}

// addAsked adds a worker that is asked, and how far it is.
func (v *view) addAsked(to *reason.List, w *Worker) {
	progress := v.progress(w)
	if progress == "" && v.goesByFit() {
		progress = reason.Fits(w.Fit)
	}
	if progress == "" {
		to.Add(w.Name)
		return
	}
	to.Add(w.Name, " (", progress, ")")
}

// obstacle says why a worker cannot take the job.
func (v *view) obstacle(w *Worker) string {
	switch {
	case w.Leaving:
		return "is being withdrawn from"
	case !w.Reachable:
		return "out of reach"
	case w.Foreign:
		return fmt.Sprintf("holds a %s of this name that Ferry did not create", v.Kind.GVK.Kind)
	case !w.AskAgain.IsZero():
		return reason.AskedAgain(w.Why, w.AskAgain)
	case !w.Serves:
		return w.Why
	}
	if why := placement.Excludes(w.Name, w.Facts, v.Wish); why != "" {
		return why
	}
	return reason.WithTrouble("an earlier copy is not gone yet", w.Trouble)
}

// progress says how far Kueue on an asked worker is. Only words that seldom
// change are taken: numbers would make every scheduling cycle there a write here.
func (v *view) progress(w *Worker) string {
	if !w.Reachable {
		return "out of reach"
	}
	if w.Blind {
		return w.Why
	}
	for _, c := range w.Workloads {
		reserved := meta.FindStatusCondition(c.Status.Conditions, kueue.WorkloadQuotaReserved)
		switch {
		case isClosed(c) && isTrue(c, kueue.WorkloadBlockedOnPreemptionGates):
			return "would have to preempt, which another worker may try first"
		case isTrue(c, kueue.WorkloadEvicted):
			return "evicted there, will be asked again"
		case reserved == nil:
		case reserved.Status == "True":
			return "quota reserved, waits for its admission checks"
		case isMisplaced(reserved.Reason):
			return reserved.Message
		default:
			return reason.WaitsThere(reserved.Reason, reserved.Message)
		}
	}
	if w.Trouble != "" {
		return "cannot be asked: " + w.Trouble
	}
	return ""
}
