package customjobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Operator runs the jobs of one kind in one namespace of one cluster.
type Operator struct {
	stop  context.CancelFunc
	ended chan error
}

// Start starts an operator; the CRD must be there.
func Start(access *rest.Config, kind *Kind, namespace string) (*Operator, error) {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		return nil, err
	}
	skip := true
	ctrl.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return nil, fmt.Errorf("starting the operator of %s: %w", kind.GVK.Kind, err)
	}
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(kind.GVK)
	err = ctrl.NewControllerManagedBy(mgr).Named(kind.Resource).For(job).
		Watches(&kueue.Workload{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), job, handler.OnlyControllerOwner())).
		Complete(&reconciler{Client: mgr.GetClient(), kind: kind})
	if err != nil {
		return nil, fmt.Errorf("starting the operator of %s: %w", kind.GVK.Kind, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &Operator{stop: stop, ended: make(chan error, 1)}
	go func() { o.ended <- mgr.Start(ctx) }()
	return o, nil
}

// Stop ends the operator and returns when it has ended.
func (o *Operator) Stop() error {
	o.stop()
	return <-o.ended
}

type reconciler struct {
	client.Client
	kind *Kind
}

// errNoWorkload: the Workload that the job names is not there yet.
var errNoWorkload = errors.New("the prebuilt Workload is not there yet")

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(r.kind.GVK)
	if err := r.Get(ctx, req.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if job.GetLabels()[queueLabel] == "" || job.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	wl, err := r.workload(ctx, job)
	if err != nil {
		return ctrl.Result{}, err
	}
	again, err := r.act(ctx, job, wl)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// act does the next thing that is due, and tells when to look again.
func (r *reconciler) act(ctx context.Context, job *unstructured.Unstructured, wl *kueue.Workload) (time.Duration, error) {
	p := r.kind.Read(job)
	elsewhere := r.kind.elsewhere(job)
	evicted := meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted)
	admitted := meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted) && !evicted
	switch {
	case meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished):
		return 0, nil
	case !p.Ended.IsZero():
		if elsewhere && !r.kind.finishesElsewhere {
			return 0, nil
		}
		return 0, r.finish(ctx, wl, p)
	case evicted && p.Started.IsZero():
		return 0, r.release(ctx, wl)
	case elsewhere:
		return 0, nil
	case !admitted && !p.Started.IsZero():
		return 0, r.setStatus(ctx, job, nil)
	case !admitted:
		return 0, r.setSuspended(ctx, job, true)
	case p.Started.IsZero():
		return r.start(ctx, job)
	}
	return r.end(ctx, job, p)
}

func (r *reconciler) start(ctx context.Context, job *unstructured.Unstructured) (time.Duration, error) {
	if err := r.setSuspended(ctx, job, false); err != nil {
		return 0, err
	}
	return runsFor(job), r.setStatus(ctx, job, r.kind.status(Progress{Started: time.Now()}))
}

// end ends a job whose time is over.
func (r *reconciler) end(ctx context.Context, job *unstructured.Unstructured, p Progress) (time.Duration, error) {
	if left := time.Until(p.Started.Add(runsFor(job))); left > 0 {
		return left, nil
	}
	p.Ended = time.Now()
	_, p.Failed = job.GetAnnotations()[Fails]
	return 0, r.setStatus(ctx, job, r.kind.status(p))
}

func runsFor(job *unstructured.Unstructured) time.Duration {
	d, err := time.ParseDuration(job.GetAnnotations()[RunsFor])
	if err != nil {
		return time.Second
	}
	return d
}

func (r *reconciler) setSuspended(ctx context.Context, job *unstructured.Unstructured, is bool) error {
	before := job.DeepCopy()
	was, _, _ := unstructured.NestedFieldNoCopy(job.Object, r.kind.suspend...)
	switch {
	case is == (was == r.kind.suspended):
		return nil
	case is:
		if err := unstructured.SetNestedField(job.Object, r.kind.suspended, r.kind.suspend...); err != nil {
			return err
		}
	default:
		unstructured.RemoveNestedField(job.Object, r.kind.suspend...)
	}
	return r.Patch(ctx, job, client.MergeFrom(before))
}

func (r *reconciler) setStatus(ctx context.Context, job *unstructured.Unstructured, status map[string]any) error {
	before := job.DeepCopy()
	if job.Object["status"] = status; status == nil {
		delete(job.Object, "status")
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if r.kind.plainStatus {
		return r.Patch(ctx, job, patch)
	}
	return r.Status().Patch(ctx, job, patch)
}
