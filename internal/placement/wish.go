package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Annotations on a job, its LocalQueue or its namespace that say where the job may run. Each restricts what the others
// leave.
const (
	// ClustersAnnotation names MultiKueueClusters, separated by commas.
	ClustersAnnotation = "ferry.dev/clusters"
	// SelectorAnnotation selects MultiKueueClusters by their labels, in kubectl's syntax.
	SelectorAnnotation = "ferry.dev/cluster-selector"
	// PreferAnnotation says, in the same syntax, what a worker had better be; only Best goes by it.
	PreferAnnotation = "ferry.dev/prefer"
)

// Annotations on a MultiKueueCluster, "true" or absent.
const (
	// CordonAnnotation keeps new jobs away from the worker; what runs there stays.
	CordonAnnotation = "ferry.dev/cordon"
	// DrainAnnotation cordons the worker, and moves what runs there.
	DrainAnnotation = "ferry.dev/drain"
)

// Facts are what an administrator says of a worker, on its MultiKueueCluster.
type Facts struct {
	Labels             map[string]string
	Cordoned, Draining bool
}

// FactsOf reads the labels and annotations of a MultiKueueCluster.
func FactsOf(labels, annotations map[string]string) Facts {
	return Facts{Labels: labels, Cordoned: annotations[CordonAnnotation] == "true", Draining: annotations[DrainAnnotation] == "true"}
}

// Source is who says where a job may run: the job, its LocalQueue or its namespace, as users are told, and what it says.
type Source struct{ Of, Clusters, Selector, Prefer string }

// Wish is where a job may run.
type Wish struct {
	demands []demand
	prefers labels.Requirements
	// Trouble is why that cannot be told; then the job may run nowhere.
	Trouble string
}

// Restricts tells whether anything was said.
func (w Wish) Restricts() bool { return len(w.demands) > 0 }

// demand is what one annotation asks for.
type demand struct {
	text  string // for users
	meets func(worker string, of Facts) bool
}

// WishOf reads all that is said about a job.
func WishOf(sources ...Source) Wish {
	var w Wish
	for _, s := range sources {
		if s.Clusters != "" {
			w.addClusters(s)
		}
		if s.Selector != "" {
			w.addSelector(s)
		}
		if s.Prefer != "" {
			w.addPreference(s)
		}
	}
	return w
}

func (w *Wish) addClusters(s Source) {
	var names []string
	for name := range strings.SplitSeq(s.Clusters, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	text := says(ClustersAnnotation, s.Clusters, s.Of)
	if len(names) == 0 {
		w.Trouble = text + " names no MultiKueueCluster: write their names, separated by commas, or remove it"
		return
	}
	w.demands = append(w.demands, demand{text, func(worker string, _ Facts) bool { return slices.Contains(names, worker) }})
}

func (w *Wish) addSelector(s Source) {
	text := says(SelectorAnnotation, s.Selector, s.Of)
	selector := w.parse(text, s.Selector)
	if selector == nil {
		return
	}
	w.demands = append(w.demands, demand{text, func(_ string, of Facts) bool { return selector.Matches(labels.Set(of.Labels)) }})
}

func (w *Wish) addPreference(s Source) {
	if selector := w.parse(says(PreferAnnotation, s.Prefer, s.Of), s.Prefer); selector != nil {
		all, _ := selector.Requirements()
		w.prefers = append(w.prefers, all...)
	}
}

// parse notes what is wrong with a selector, and gives nil then.
func (w *Wish) parse(text, value string) labels.Selector {
	selector, err := labels.Parse(value)
	if err != nil {
		w.Trouble = fmt.Sprintf("%s is no label selector such as region=eu,tier!=spot: %v", text, err)
		return nil
	}
	return selector
}

// Preferred is the share of what is preferred that is true of a worker, from 0 to 1.
func (w Wish) Preferred(of Facts) float64 {
	if len(w.prefers) == 0 {
		return 0
	}
	n := 0
	for _, r := range w.prefers {
		if r.Matches(labels.Set(of.Labels)) {
			n++
		}
	}
	return float64(n) / float64(len(w.prefers))
}

func says(annotation, value, of string) string {
	return fmt.Sprintf("%s %q of %s", annotation, value, of)
}

// Filter leaves workers out.
type Filter struct {
	// Name is for the documentation, Doc says whom it leaves out.
	Name, Doc string
	excludes  func(worker string, of Facts, w Wish) string
}

// Filters are asked in this order, after what stands in the way of a worker whatever anybody wishes; the first that
// leaves a worker out gives the words that users read.
func Filters() []Filter { return filters }

var filters = []Filter{
	{"Cordoned", "a worker with `ferry.dev/cordon: \"true\"`", func(_ string, of Facts, _ Wish) string {
		if of.Cordoned {
			return "cordoned"
		}
		return ""
	}},
	{"Draining", "a worker with `ferry.dev/drain: \"true\"`", func(_ string, of Facts, _ Wish) string {
		if of.Draining {
			return "being drained"
		}
		return ""
	}},
	{"Unwanted", "a worker that `ferry.dev/clusters` or `ferry.dev/cluster-selector` of the job, its LocalQueue or its namespace leaves out", unwanted},
}

func unwanted(worker string, of Facts, w Wish) string {
	for _, d := range w.demands {
		if !d.meets(worker, of) {
			return "left out by " + d.text
		}
	}
	return ""
}

// Excludes says why a worker is not asked; empty: no filter leaves it out.
func Excludes(worker string, of Facts, w Wish) string {
	if w.Trouble != "" {
		return "nobody knows whether the job may run there"
	}
	for _, f := range filters {
		if why := f.excludes(worker, of, w); why != "" {
			return why
		}
	}
	return ""
}

// MeetsNobody says which demands leave all of some workers out; empty: they do not, or there are no workers.
func (w Wish) MeetsNobody(workers []string, facts func(worker string) Facts) string {
	var texts []string
	for _, d := range w.demands {
		texts = append(texts, d.text)
	}
	if len(workers) == 0 || slices.ContainsFunc(workers, func(name string) bool { return unwanted(name, facts(name), w) == "" }) {
		return ""
	}
	return strings.Join(texts, " and ")
}
