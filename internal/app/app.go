// Package app composes Ferry: the manager's client and caches, the fleet, the controllers; the wiring is one list.
package app

import (
	"context"
	"fmt"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	inventoryaccess "sigs.k8s.io/cluster-inventory-api/pkg/access"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/apply"
	"ferry.dev/ferry/internal/config"
	"ferry.dev/ferry/internal/controllers/check"
	"ferry.dev/ferry/internal/controllers/dispatch"
	"ferry.dev/ferry/internal/controllers/drain"
	"ferry.dev/ferry/internal/controllers/lane"
	"ferry.dev/ferry/internal/controllers/mirror"
	"ferry.dev/ferry/internal/controllers/quota"
	"ferry.dev/ferry/internal/controllers/worker"
	"ferry.dev/ferry/internal/fleet"
	"ferry.dev/ferry/internal/inlet"
	"ferry.dev/ferry/internal/jobs"
	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/observe"
	"ferry.dev/ferry/internal/placement"
	"ferry.dev/ferry/internal/plan"
	"ferry.dev/ferry/internal/webhook"
)

// Options are what Run needs besides the configuration.
type Options struct {
	Config     *config.Configuration
	Kubeconfig string
	Version    string
	Log        logr.Logger
}

// Run runs Ferry until ctx ends.
func Run(ctx context.Context, o Options) error {
	limitMemory(o.Log)
	restConfig, err := managerConfig(o)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, managerOptions(o))
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	origin, err := originOf(ctx, mgr, o.Config)
	if err != nil {
		return err
	}
	o.Log.Info("Starting Ferry", "version", o.Version, "origin", origin, "kinds", Table(o.Config).Frameworks(), "dispatcher", o.Config.MultiKueue.DispatcherName)
	if err := assemble(ctx, mgr, o, origin); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// limitMemory lets the garbage collector know of the container's limit, of which it may use nine tenths; GOMEMLIMIT and
// AUTOMEMLIMIT in the environment win.
func limitMemory(log logr.Logger) {
	if _, err := memlimit.Set(); err != nil {
		log.Info("The container's limit of memory is not known; the garbage collector goes by none", "reason", err.Error())
	}
}

func managerConfig(o Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	restConfig, err := rest.InClusterConfig()
	if o.Kubeconfig != "" || err != nil {
		restConfig, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("no access to the manager cluster: run Ferry in it, or give --kubeconfig: %w", err)
	}
	restConfig.QPS, restConfig.Burst = *o.Config.ClientConnection.QPS, int(*o.Config.ClientConnection.Burst)
	restConfig.UserAgent = "ferry/" + o.Version
	return restConfig, nil
}

// assemble is the list of Ferry's parts.
func assemble(ctx context.Context, mgr ctrl.Manager, o Options, origin string) error {
	table := Table(o.Config)
	statuses := &inlet.Inlet[kinds.Ref]{}
	w := &wiring{in: &inlet.Inlet[kinds.Ref]{}, clusters: &inlet.Inlet[reconcile.Request]{}, quotas: &inlet.Inlet[reconcile.Request]{}, log: o.Log}
	var err error
	if w.jobs, err = jobs.New(jobsOptions(mgr, o, table)); err != nil {
		return err
	}
	workers := fleetOptions(mgr, o, origin, table, w)
	w.fleet = fleet.New(workers)
	w.observer = &observe.Observer{
		Manager: w.jobs, Fleet: w.fleet, Kinds: table, Memory: observe.NewMemory(), Clock: clock.RealClock{}, Policy: policy(o.Config, origin, workers.FirstConnect()),
		Wake:       func(refs ...kinds.Ref) { w.in.Add(refs...) },
		Placements: placements(o.Config.MultiKueue), WantQueues: w.wantQueues,
	}
	w.observer.Memory.OnKindsFail(func(name string) { w.clusters.Add(worker.Request(name)) })
	w.quota = followWorkers(mgr, o.Config, w.fleet, workers.FirstConnect())
	drains := &drain.Reconciler{
		Client: mgr.GetClient(), Observer: w.observer, AtOnce: int(*o.Config.MultiKueue.Drain.Concurrency), Wake: func(refs ...kinds.Ref) { w.in.Add(refs...) },
	}
	applier := &apply.Applier{
		Manager: mgr.GetClient(), Recorder: mgr.GetEventRecorder("ferry"), Memory: w.observer.Memory, Clock: clock.RealClock{},
		Metrics: apply.NewMetrics(metrics.Registry, role(o.Config)),
	}
	w.lanes = &lane.Lanes{Observer: w.observer, Applier: applier, Poke: func(ref kinds.Ref) { w.in.Add(ref) }, Log: o.Log.WithName("lane")}
	w.dispatch = &dispatch.Reconciler{
		Observer: w.observer, Applier: applier, Decided: countDecisions(metrics.Registry),
		Poke:   func(worker string, ref kinds.Ref) { w.lanes.Add(worker, ref) },
		Mirror: func(ref kinds.Ref) { statuses.Add(ref) },
	}
	mirrors := &mirror.Reconciler{Observer: w.observer, Applier: applier, Budget: mirror.BudgetOf(*o.Config.ClientConnection.QPS, int(*o.Config.ClientConnection.Burst))}
	for _, add := range []func() error{
		func() error {
			return mgr.GetFieldIndexer().IndexField(ctx, &kueue.Workload{}, observe.JobIndex, observe.OwnerIndex)
		},
		func() error { return startInformers(ctx, mgr) },
		func() (err error) { w.observer.Setup, err = newSetup(ctx, mgr.GetCache()); return err },
		func() error { return dispatch.Setup(mgr, w.dispatch, w.in, w.listen) },
		func() error { return mirror.Setup(mgr, mirrors, statuses) },
		func() error { return check.Setup(mgr) },
		func() error { return worker.Setup(mgr, workerOptions(o.Config, w)) },
		func() error { return quota.Setup(mgr, w.quota, w.quotas) },
		func() error { return w.watchCapacity(ctx) },
		func() error { return drain.Setup(mgr, drains) },
		func() error {
			webhook.Register(mgr.GetWebhookServer(), table, w.jobs, mgr.GetAPIReader())
			return nil
		},
		func() error {
			return addAll(mgr, w.jobs, w.fleet, w.lanes, &resync{wiring: w, every: o.Config.MultiKueue.GCInterval.Duration})
		},
		func() error { return addProbes(mgr, w.jobs) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

func followWorkers(mgr ctrl.Manager, c *config.Configuration, workers *fleet.Fleet, firstConnect time.Duration) *quota.Reconciler {
	return &quota.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Fleet: workers, Clock: clock.RealClock{},
		LostTimeout: c.MultiKueue.WorkerLostTimeout.Duration, FirstConnect: firstConnect,
	}
}

func addAll(mgr ctrl.Manager, runnables ...manager.Runnable) error {
	for _, r := range runnables {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("setting up: %w", err)
		}
	}
	return nil
}

// preemptionTimeout is zero where preemption is not orchestrated.
func preemptionTimeout(o config.OrchestratedPreemption) time.Duration {
	if !o.Enabled {
		return 0
	}
	return o.Timeout.Duration
}

func policy(c *config.Configuration, origin string, firstConnect time.Duration) plan.Policy {
	return plan.Policy{
		Origin: origin, Dispatcher: c.MultiKueue.DispatcherName, WorkerLostTimeout: c.MultiKueue.WorkerLostTimeout.Duration,
		PlaceTimeout: c.Workers.PlaceTimeout.Duration, StartTimeout: c.MultiKueue.StartTimeout.Duration, FirstConnect: firstConnect,
		PreemptionTimeout: preemptionTimeout(c.MultiKueue.OrchestratedPreemption), Retain: c.MultiKueue.ObjectRetentionPolicies.RemoteObjects.AfterFinished.Duration,
		Placement: placements(c.MultiKueue)(c.MultiKueue.DispatcherName),
	}
}

// placements gives the placement that a dispatcher's name stands for.
func placements(m config.MultiKueue) func(dispatcher string) placement.Placement {
	pace := m.IncrementalDispatcherConfig
	if pace == nil { // a MultiKueueConfig may name it all the same
		other := &config.Configuration{MultiKueue: config.MultiKueue{DispatcherName: config.DispatcherIncremental}}
		other.SetDefaults()
		pace = other.MultiKueue.IncrementalDispatcherConfig
	}
	incremental := placement.Incremental{StepSize: int(*pace.StepSize), Round: pace.RoundTimeout.Duration}
	best, weights := m.BestDispatcherConfig, m.BestDispatcherConfig.Weights
	byFit := placement.Best{
		AtOnce: int(*best.Nominate), After: best.After.Duration,
		Weights: placement.Weights{Fits: float64(*weights.Fits), Free: float64(*weights.Free), Preferred: float64(*weights.Preferred), RanThere: float64(*weights.RanThere)},
	}
	return func(dispatcher string) placement.Placement { return placement.ByName(dispatcher, incremental, byFit) }
}

// providers are the credential plugins as the library for ClusterProfiles takes them.
func providers(p *config.ClusterProfile) []inventoryaccess.Provider {
	var all []inventoryaccess.Provider
	for _, provider := range p.Providers() {
		plugin := &clientcmdapi.ExecConfig{
			APIVersion: provider.ExecConfig.APIVersion, Command: provider.ExecConfig.Command, Args: provider.ExecConfig.Args,
			ProvideClusterInfo: provider.ExecConfig.ProvideClusterInfo, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}
		for _, v := range provider.ExecConfig.Env {
			plugin.Env = append(plugin.Env, clientcmdapi.ExecEnvVar{Name: v.Name, Value: v.Value})
		}
		all = append(all, inventoryaccess.Provider{Name: provider.Name, ExecConfig: plugin})
	}
	return all
}

func workerOptions(c *config.Configuration, w *wiring) worker.Options {
	return worker.Options{
		Fleet: w.fleet, States: w.clusters, Namespace: c.Namespace,
		KubeConfigDir: c.Workers.KubeConfigPathPrefix, AllowInsecure: c.Workers.AllowInsecureKubeConfigs,
		Providers: providers(c.MultiKueue.ClusterProfile),
		Failing:   w.observer.Memory.FailingKinds, Left: w.left, Vacated: w.observer.Memory.Vacated, WithdrawTimeout: c.MultiKueue.WithdrawTimeout.Duration,
	}
}

func fleetOptions(mgr ctrl.Manager, o Options, origin string, table *kinds.Table, w *wiring) fleet.Options {
	c := o.Config.Workers
	return fleet.Options{
		Kinds: table.GVKs(), Unnamed: table.Unnamed(), Origin: origin, Scheme: mgr.GetScheme(),
		Index: kinds.CopyOf, Lean: kinds.LeanCopy,
		QPS: *c.ClientConnection.QPS, Burst: int(*c.ClientConnection.Burst),
		RequestTimeout: c.RequestTimeout.Duration, ProbeInterval: c.ProbeInterval.Duration, ProbeTimeout: c.ProbeTimeout.Duration,
		FailureThreshold: int(*c.FailureThreshold),
		Backoff:          fleet.Backoff{Initial: c.ReconnectBackoff.Initial.Duration, Max: c.ReconnectBackoff.Max.Duration},
		Events:           fleet.Events{Changed: w.changed, Queues: w.queues, State: w.state},
		Log:              o.Log.WithName("fleet"), UserAgent: "ferry/" + o.Version,
	}
}
