package capacity

import (
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// turn is how long a job is taken to run. Nobody knows; waits are compared with each other only.
const turn = time.Minute

// Predict tells how well a Workload fits into its queue on the worker now. Known are the Workloads there that have quota
// and are seen themselves: those whose queue does not count them yet count here, and of all it is known whether they may
// be preempted. Offered are those that have none yet; those that do not come after the Workload are taken to get theirs first.
func (w *Worker) Predict(r Request, known []Holder, offered []Request) Fit {
	if r.Queue == nil {
		return Fit{Class: NeverFits, Why: "it has no such LocalQueue"}
	}
	n := w.queues[r.Queue.Spec.ClusterQueue]
	if n == nil {
		return Fit{Class: NeverFits, Why: "it has no ClusterQueue " + string(r.Queue.Spec.ClusterQueue)}
	}
	p := &predictor{worker: w, request: &r, queue: n, used: &usage{}, running: known}
	for _, h := range known {
		if queue := w.queues[h.Queue]; queue != nil && !h.Visible {
			for _, held := range h.Holds {
				p.used.add(queue, place{held.Flavor, held.Resource}, max(held.Amount, 0))
			}
		}
	}
	for i := range offered {
		if offered[i].Priority >= r.Priority {
			p.makeRoom(&offered[i])
		}
	}
	fit := p.predict()
	if why := closed(r.Queue, n); why != "" && fit.Class < NeverFits {
		return Fit{Class: FitsLater, Why: why, Wait: 24 * time.Hour}
	}
	return fit
}

// makeRoom has another Workload take what it would get.
func (p *predictor) makeRoom(r *Request) {
	if r.Queue == nil || p.worker.queues[r.Queue.Spec.ClusterQueue] == nil {
		return
	}
	other := &predictor{worker: p.worker, request: r, queue: p.worker.queues[r.Queue.Spec.ClusterQueue], used: p.used}
	if got := other.assign(podSetsOf(r)); got.way == atOnce {
		for at, amount := range got.needs {
			p.used.add(other.queue, at, amount)
		}
	}
}

// closed tells why a queue admits nobody at all now.
func closed(local *kueue.LocalQueue, n *node) string {
	switch {
	case isHeld(n.queue.Spec.StopPolicy):
		return "its ClusterQueue " + n.queue.Name + " is stopped (" + string(*n.queue.Spec.StopPolicy) + ")"
	case isHeld(local.Spec.StopPolicy):
		return "its LocalQueue is stopped (" + string(*local.Spec.StopPolicy) + ")"
	case n.cyclic:
		return "the cohorts of its queue form a circle"
	}
	if c := meta.FindStatusCondition(n.queue.Status.Conditions, kueue.ClusterQueueActive); c != nil && c.Status == metav1.ConditionFalse {
		return "its ClusterQueue " + n.queue.Name + " is not active: " + c.Message
	}
	return ""
}

func isHeld(policy *kueue.StopPolicy) bool {
	return policy != nil && *policy != kueue.None && *policy != ""
}

func (p *predictor) predict() Fit {
	if why := p.excluded(); why != "" {
		return Fit{Class: NeverFits, Why: why}
	}
	sets := podSetsOf(p.request)
	got, class, fewer := p.search(sets)
	if class == NeverFits {
		// What it gets now depends on who is there: only what does not fit into the empty queue either never does.
		empty := *p
		empty.used = p.worker.empty()
		most, class, _ := empty.search(sets)
		if class < FitsPreempting {
			return p.fit(got, FitsLater, 0)
		}
		return p.fit(most, NeverFits, 0)
	}
	return p.fit(got, class, fewer)
}

// search tries all pods, and then as many as will do where the Workload can do with fewer.
func (p *predictor) search(sets []podSet) (got assignment, class Class, fewer int64) {
	got, class = p.attempt(sets)
	left := spare(sets)
	if class <= FitsPreempting || left == 0 {
		return got, class, 0
	}
	step := sort.Search(int(left)+1, func(i int) bool {
		_, class := p.attempt(scaled(sets, int64(i), left))
		return class <= FitsPreempting
	})
	reduced := scaled(sets, min(int64(step), left), left)
	got, class = p.attempt(reduced)
	return got, class, left - spare(reduced)
}

// excluded tells why the queue does not take Workloads of this namespace. Labels that are not known are let pass.
func (p *predictor) excluded() string {
	wants := p.queue.queue.Spec.NamespaceSelector
	if wants == nil {
		return "its ClusterQueue " + p.queue.queue.Name + " takes jobs of no namespace"
	}
	selector, err := metav1.LabelSelectorAsSelector(wants)
	if err != nil {
		return "its ClusterQueue " + p.queue.queue.Name + " has a namespaceSelector that cannot be read"
	}
	set := labels.Set{"kubernetes.io/metadata.name": p.request.Queue.Namespace}
	for key, value := range p.request.NamespaceLabels {
		set[key] = value
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if (p.request.NamespaceLabels != nil || set.Has(r.Key())) && !r.Matches(set) {
			return "its ClusterQueue " + p.queue.queue.Name + " does not take jobs of namespace " + p.request.Queue.Namespace
		}
	}
	return ""
}

// attempt assigns flavors, and tells what comes of it.
func (p *predictor) attempt(sets []podSet) (assignment, Class) {
	got := p.assign(sets)
	switch {
	case got.never && got.way == inNoWay:
		return got, NeverFits
	case got.way <= nobodyToPreempt:
		return got, FitsLater
	case got.way < atOnce:
		if p.preempts(got.needs, got.short).way == nobodyToPreempt {
			return got, FitsLater
		}
		return got, FitsPreempting
	case got.height > 0:
		return got, FitsBorrowing
	}
	return got, FitsNominal
}
