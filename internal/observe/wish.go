package observe

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
)

// Setup gives what surrounds jobs on the manager, as the caches hold it: nobody changes that. Nil where there is none.
type Setup interface {
	Cluster(name string) *kueue.MultiKueueCluster
	LocalQueue(namespace, name string) *kueue.LocalQueue
	Namespace(name string) *metav1.PartialObjectMetadata
}

// readWish reads where the job, its queue and its namespace say that it may go.
func (o *Observer) readWish(s *plan.Snapshot) {
	if o.Setup == nil || len(s.Workloads) == 0 {
		return
	}
	var sources [3]placement.Source
	said := sources[:0]
	if len(s.Jobs) > 0 {
		said = add(said, "the job", func(annotation string) string { return annotationOf(s.Jobs[0], annotation) })
	}
	if queue := o.Setup.LocalQueue(s.Ref.Namespace, string(s.Workloads[0].Spec.QueueName)); queue != nil {
		said = add(said, "its LocalQueue", func(annotation string) string { return queue.Annotations[annotation] })
	}
	if namespace := o.Setup.Namespace(s.Ref.Namespace); namespace != nil {
		said = add(said, "its namespace", func(annotation string) string { return namespace.Annotations[annotation] })
	}
	if len(said) > 0 {
		s.Wish = placement.WishOf(said...)
	}
}

// add adds who says something.
func add(said []placement.Source, of string, says func(annotation string) string) []placement.Source {
	s := placement.Source{
		Of: of, Clusters: says(placement.ClustersAnnotation), Selector: says(placement.SelectorAnnotation), Prefer: says(placement.PreferAnnotation),
	}
	if s == (placement.Source{Of: of}) {
		return said
	}
	return append(said, s)
}

// facts are what an administrator says of a worker.
func (o *Observer) facts(worker string) placement.Facts {
	if o.Setup == nil {
		return placement.Facts{}
	}
	cluster := o.Setup.Cluster(worker)
	if cluster == nil {
		return placement.Facts{}
	}
	return placement.FactsOf(cluster.Labels, cluster.Annotations)
}

// JobSays is what an annotation of a job says, which is there or not; of several objects the first one's counts.
func (o *Observer) JobSays(ctx context.Context, ref kinds.Ref, annotation string) (string, error) {
	s := plan.Snapshot{Ref: ref, Kind: o.Kinds.ByName(ref.Kind), Now: o.Clock.Now()}
	if s.Kind == nil {
		return "", nil
	}
	if err := o.readJobs(ctx, &s); err != nil || len(s.Jobs) == 0 {
		return "", err
	}
	return annotationOf(s.Jobs[0], annotation), nil
}

func annotationOf(job *unstructured.Unstructured, annotation string) string {
	text, _, _ := unstructured.NestedString(job.Object, "metadata", "annotations", annotation)
	return text
}
