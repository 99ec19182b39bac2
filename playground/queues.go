package playground

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Quota is what a cluster's queue may hand out.
type Quota struct{ CPU, Memory string }

// QueueOptions describe one queue, the same in all clusters but for its quota. Empty fields get defaults.
type QueueOptions struct {
	Namespace    string // of the LocalQueue; made if missing. Default "default"
	LocalQueue   string // default "queue"
	ClusterQueue string // default: as LocalQueue
	Flavor       string // default "default"
	Check        string // AdmissionCheck and MultiKueueConfig on the manager. Default: as ClusterQueue
	// Apart calls the flavor on each cluster after it, and the ClusterQueue on each worker, and ties the flavor to nodes that
	// only this cluster has, by label and toleration: what one cluster's Kueue wrote would show on any other.
	Apart bool

	Manager   Quota            // default 1000 CPUs, 4Ti
	Worker    Quota            // of each worker; default as Manager
	PerWorker map[string]Quota // exceptions by worker name
	Workers   []string         // which workers the config names, in this order; default all
	// SetQuota gives the quota also to a ClusterQueue that is there already.
	SetQuota bool
	// Edit, if set, may change a ClusterQueue before it is made (preemption, cohort, …).
	Edit func(cluster string, q *kueue.ClusterQueue) `json:"-"`
}

func (o QueueOptions) withDefaults(p *Playground) QueueOptions {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&o.Namespace, metav1.NamespaceDefault)
	fill(&o.LocalQueue, "queue")
	fill(&o.ClusterQueue, o.LocalQueue)
	fill(&o.Flavor, "default")
	fill(&o.Check, o.ClusterQueue)
	fill(&o.Manager.CPU, "1000")
	fill(&o.Manager.Memory, "4Ti")
	fill(&o.Worker.CPU, o.Manager.CPU)
	fill(&o.Worker.Memory, o.Manager.Memory)
	if o.Workers == nil {
		for _, w := range p.workers {
			o.Workers = append(o.Workers, w.Name)
		}
	}
	return o
}

func (o QueueOptions) quota(cluster string) Quota {
	if cluster == ManagerName {
		return o.Manager
	}
	q := o.PerWorker[cluster]
	if q.CPU == "" {
		q.CPU = o.Worker.CPU
	}
	if q.Memory == "" {
		q.Memory = o.Worker.Memory
	}
	return q
}

// InstallQueues makes a queue in all clusters, and on the manager the check that sends its jobs to workers. It
// returns once the queues are active; on a manager with neither Ferry nor MultiKueue nobody activates the check, so
// there it does not wait.
func (p *Playground) InstallQueues(ctx context.Context, o QueueOptions) error {
	o = o.withDefaults(p)
	if err := o.validate(p.Clusters()); err != nil {
		return err
	}
	return each(ctx, p.Clusters(), func(ctx context.Context, c *Cluster) error {
		if err := c.installQueue(ctx, o); err != nil {
			return fmt.Errorf("install queue %s on %s: %w", o.LocalQueue, c.Name, err)
		}
		if c.IsManager() && !p.options.Ferry && !p.options.StockMultiKueue {
			return nil
		}
		return c.awaitQueue(ctx, o)
	})
}

func (c *Cluster) installQueue(ctx context.Context, o QueueOptions) error {
	if err := c.ensureNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	objects := []client.Object{o.flavor(c.Name)}
	if c.IsManager() {
		objects = append(objects, o.config(), o.check())
	}
	queue := o.clusterQueue(c)
	objects = append(objects, queue, &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.LocalQueue},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queue.Name)},
	})
	if err := c.create(ctx, objects...); err != nil || !o.SetQuota {
		return err
	}
	return insist(ctx, fmt.Sprintf("set the quota of ClusterQueue %s on %s", queue.Name, c.Name), func(ctx context.Context) error {
		return c.setQuota(ctx, queue)
	}, c.apiserver)
}

// setQuota gives the ClusterQueue of that name the quota of this one.
func (c *Cluster) setQuota(ctx context.Context, queue *kueue.ClusterQueue) error {
	live := &kueue.ClusterQueue{}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(queue), live); err != nil {
		return err
	}
	before := live.DeepCopy()
	live.Spec.ResourceGroups = queue.Spec.ResourceGroups
	return c.client.Patch(ctx, live, client.MergeFrom(before))
}

// ClusterQueueOn is what the ClusterQueue of a cluster is called; "manager" names the manager.
func (o QueueOptions) ClusterQueueOn(cluster string) string {
	if o.Apart && cluster != ManagerName {
		return o.ClusterQueue + "-on-" + cluster
	}
	return o.ClusterQueue
}

func (o QueueOptions) flavor(cluster string) *kueue.ResourceFlavor {
	flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: o.Flavor}}
	if o.Apart {
		flavor.Name += "-of-" + cluster
		flavor.Spec.NodeLabels = map[string]string{ClusterLabel: cluster}
		flavor.Spec.Tolerations = []corev1.Toleration{{Key: ClusterLabel, Operator: corev1.TolerationOpEqual, Value: cluster, Effect: corev1.TaintEffectNoSchedule}}
	}
	return flavor
}

func (o QueueOptions) config() *kueue.MultiKueueConfig {
	return &kueue.MultiKueueConfig{
		ObjectMeta: metav1.ObjectMeta{Name: o.Check},
		Spec:       kueue.MultiKueueConfigSpec{Clusters: slices.Clone(o.Workers)},
	}
}

func (o QueueOptions) check() *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{
		ObjectMeta: metav1.ObjectMeta{Name: o.Check},
		Spec: kueue.AdmissionCheckSpec{
			ControllerName: kueue.MultiKueueControllerName,
			Parameters: &kueue.AdmissionCheckParametersReference{
				APIGroup: kueue.SchemeGroupVersion.Group, Kind: "MultiKueueConfig", Name: o.Check,
			},
		},
	}
}

// validate, before anything is made, looks at what an API server would refuse, or Kueue wait for without end.
func (o QueueOptions) validate(clusters []*Cluster) error {
	var errs []error
	if wrong := content.IsDNS1123Label(o.Namespace); len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("namespace %q: %s", o.Namespace, strings.Join(wrong, ", ")))
	}
	for _, name := range slices.Compact([]string{o.LocalQueue, o.ClusterQueue, o.Flavor, o.Check}) {
		if wrong := content.IsDNS1123Subdomain(name); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("queue %q: %s", name, strings.Join(wrong, ", ")))
		}
	}
	for _, c := range clusters {
		quota := o.quota(c.Name)
		for _, amount := range []string{quota.CPU, quota.Memory} {
			if q, err := resource.ParseQuantity(amount); err != nil || q.Sign() < 0 {
				errs = append(errs, fmt.Errorf("quota of %s: %q is no amount, use one such as 8, 500m or 32Gi", c.Name, amount))
			}
		}
	}
	return errors.Join(errs...)
}

func (o QueueOptions) clusterQueue(c *Cluster) *kueue.ClusterQueue {
	quota := o.quota(c.Name)
	cpu, memory := resource.MustParse(quota.CPU), resource.MustParse(quota.Memory)
	q := &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: o.ClusterQueueOn(c.Name)},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory},
				Flavors: []kueue.FlavorQuotas{{
					Name: kueue.ResourceFlavorReference(o.flavor(c.Name).Name),
					Resources: []kueue.ResourceQuota{
						{Name: corev1.ResourceCPU, NominalQuota: cpu},
						{Name: corev1.ResourceMemory, NominalQuota: memory},
					},
				}},
			}},
		},
	}
	if c.IsManager() {
		q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{
			AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: kueue.AdmissionCheckReference(o.Check)}},
		}
	}
	if o.Edit != nil {
		o.Edit(c.Name, q)
	}
	return q
}

func (c *Cluster) awaitQueue(ctx context.Context, o QueueOptions) error {
	return await(ctx, fmt.Sprintf("queue %s on %s", o.LocalQueue, c.Name), func(ctx context.Context) error {
		var q kueue.LocalQueue
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.LocalQueue}, &q); err != nil {
			return err
		}
		active := meta.FindStatusCondition(q.Status.Conditions, kueue.LocalQueueActive)
		switch {
		case active == nil:
			return fmt.Errorf("LocalQueue %s has no Active condition", o.LocalQueue)
		case active.Status != metav1.ConditionTrue:
			return fmt.Errorf("LocalQueue %s is not active: %s", o.LocalQueue, active.Message)
		}
		return nil
	}, c.Component("kueue"), c.apiserver)
}
