package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueueconfig "sigs.k8s.io/kueue/apis/config/v1beta2"
)

// Off is the bind address that turns a server off.
const Off = "0"

// Every dispatcher of Kueue's own starts with this: an unknown one is a misspelling, not a controller of the user's.
const kueueDispatcherPrefix = "kueue.x-k8s.io/multikueue-dispatcher-"

// Validate checks a configuration after SetDefaults. known lists the frameworks that this Ferry can dispatch.
// The error names every wrong field at once, with its path, its value and what would be right.
func (c *Configuration) Validate(known []string) error {
	return c.validate(known).ToAggregate()
}

func (c *Configuration) validate(known []string) field.ErrorList {
	return slices.Concat(
		check(field.NewPath("namespace"), c.Namespace, content.IsDNS1123Label),
		c.Webhook.validate(field.NewPath("webhook")),
		checkBindAddress(field.NewPath("health", "healthProbeBindAddress"), c.Health.HealthProbeBindAddress),
		c.Metrics.validate(field.NewPath("metrics")),
		c.LeaderElection.validate(field.NewPath("leaderElection"), c.Namespace),
		c.ClientConnection.validate(field.NewPath("clientConnection")),
		c.Integrations.validate(field.NewPath("integrations"), known),
		c.MultiKueue.validate(field.NewPath("multiKueue"), known),
		c.Workers.validate(field.NewPath("workers")),
	)
}

func (w Webhook) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *w.Port < 1 || *w.Port > 65535 {
		errs = append(errs, field.Invalid(at.Child("port"), *w.Port, "must be between 1 and 65535"))
	}
	return errs
}

func (m Metrics) validate(at *field.Path) field.ErrorList {
	errs := checkBindAddress(at.Child("bindAddress"), m.BindAddress)
	if len(errs) > 0 || m.BindAddress == Off || *m.SecureServing || isLoopback(m.BindAddress) {
		return errs
	}
	return append(errs, field.Invalid(at.Child("secureServing"), false, fmt.Sprintf(
		"plain HTTP is for loopback addresses only, and metrics.bindAddress is %q: use an address such as 127.0.0.1:8080, or set this to true", m.BindAddress)))
}

func (l LeaderElection) validate(at *field.Path, namespace string) field.ErrorList {
	errs := check(at.Child("resourceName"), l.ResourceName, content.IsDNS1123Subdomain)
	if l.ResourceName == kueueconfig.DefaultLeaderElectionID {
		errs = append(errs, field.Invalid(at.Child("resourceName"), l.ResourceName,
			"this is Kueue's lease: Ferry and Kueue would keep each other from running; use "+DefaultLease))
	}
	if l.ResourceNamespace == namespace { // as it is by default: one mistake, one error
		return errs
	}
	return append(errs, check(at.Child("resourceNamespace"), l.ResourceNamespace, content.IsDNS1123Label)...)
}

func (c ClientConnection) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *c.QPS == 0 {
		errs = append(errs, field.Invalid(at.Child("qps"), 0, "would be taken for 5 requests per second: use a positive number, or a negative one for no limit"))
	}
	return append(errs, checkAtLeastOne(at.Child("burst"), *c.Burst)...)
}

func (i Integrations) validate(at *field.Path, known []string) field.ErrorList {
	var errs field.ErrorList
	for n, name := range i.Frameworks {
		here := at.Child("frameworks").Index(n)
		switch {
		case !slices.Contains(known, name):
			errs = append(errs, field.NotSupported(here, name, known))
		case slices.Contains(i.Frameworks[:n], name):
			errs = append(errs, field.Duplicate(here, name))
		}
	}
	return errs
}

func (m MultiKueue) validate(at *field.Path, known []string) field.ErrorList {
	errs := slices.Concat(
		checkNotNegative(at.Child("gcInterval"), m.GCInterval),
		check(at.Child("origin"), m.Origin, content.IsLabelValue),
		checkNotNegative(at.Child("workerLostTimeout"), m.WorkerLostTimeout),
		checkNotNegative(at.Child("startTimeout"), m.StartTimeout),
		checkNotNegative(at.Child("objectRetentionPolicies", "remoteObjects", "afterFinished"), m.ObjectRetentionPolicies.RemoteObjects.AfterFinished),
		m.BestDispatcherConfig.validate(at.Child("bestDispatcherConfig")),
		checkAtLeastOne(at.Child("drain", "concurrency"), *m.Drain.Concurrency),
		checkPositive(at.Child("orchestratedPreemption", "timeout"), m.OrchestratedPreemption.Timeout),
		checkDispatcher(at.Child("dispatcherName"), m.DispatcherName),
		m.validatePace(at.Child("incrementalDispatcherConfig")),
		checkExternal(at.Child("externalFrameworks"), m.ExternalFrameworks, known),
	)
	if m.WithdrawTimeout != m.WorkerLostTimeout { // by default it is that one
		errs = append(errs, checkNotNegative(at.Child("withdrawTimeout"), m.WithdrawTimeout)...)
	}
	return append(errs, m.ClusterProfile.validate(at.Child("clusterProfile"))...)
}

// execVersions are the versions of the API between Ferry and a credential plugin.
var execVersions = []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}

func (p *ClusterProfile) validate(at *field.Path) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	providers := at.Child("accessProviders")
	if len(p.CredentialsProviders) > 0 {
		if len(p.AccessProviders) > 0 {
			return field.ErrorList{field.Forbidden(at.Child("credentialsProviders"), "it is the deprecated name of accessProviders: move its entries there")}
		}
		providers = at.Child("credentialsProviders")
	}
	names := map[string]bool{}
	for i, provider := range p.Providers() {
		here := providers.Index(i)
		switch {
		case provider.Name == "":
			errs = append(errs, field.Required(here.Child("name"), "the name under which ClusterProfiles list it"))
		case names[provider.Name]:
			errs = append(errs, field.Duplicate(here.Child("name"), provider.Name))
		}
		names[provider.Name] = true
		if provider.ExecConfig.Command == "" {
			errs = append(errs, field.Required(here.Child("execConfig", "command"), "the program that prints a credential"))
		}
		if version := provider.ExecConfig.APIVersion; !slices.Contains(execVersions, version) {
			errs = append(errs, field.NotSupported(here.Child("execConfig", "apiVersion"), version, execVersions))
		}
	}
	return errs
}

// Providers are the access providers, by whichever name they stand there.
func (p *ClusterProfile) Providers() []AccessProvider {
	if p == nil {
		return nil
	}
	return slices.Concat(p.AccessProviders, p.CredentialsProviders)
}

func (m MultiKueue) validatePace(at *field.Path) field.ErrorList {
	pace := m.IncrementalDispatcherConfig
	if pace == nil {
		return nil
	}
	if m.DispatcherName != DispatcherIncremental {
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("only valid with dispatcherName %s, not with %s", DispatcherIncremental, m.DispatcherName))}
	}
	return append(checkAtLeastOne(at.Child("stepSize"), *pace.StepSize), checkPositive(at.Child("roundTimeout"), pace.RoundTimeout)...)
}

func (w Workers) validate(at *field.Path) field.ErrorList {
	errs := slices.Concat(
		w.ClientConnection.validate(at.Child("clientConnection")),
		checkPositive(at.Child("requestTimeout"), w.RequestTimeout),
		checkNotNegative(at.Child("placeTimeout"), w.PlaceTimeout),
		checkPositive(at.Child("probeInterval"), w.ProbeInterval),
		checkPositive(at.Child("probeTimeout"), w.ProbeTimeout),
		checkAtLeastOne(at.Child("failureThreshold"), *w.FailureThreshold),
		checkFolder(at.Child("kubeConfigPathPrefix"), w.KubeConfigPathPrefix),
		checkPositive(at.Child("reconnectBackoff", "initial"), w.ReconnectBackoff.Initial),
	)
	if w.ReconnectBackoff.Max.Duration < w.ReconnectBackoff.Initial.Duration {
		errs = append(errs, field.Invalid(at.Child("reconnectBackoff", "max"), w.ReconnectBackoff.Max.Duration.String(),
			fmt.Sprintf("must not be below initial, which is %s", w.ReconnectBackoff.Initial.Duration)))
	}
	return errs
}

func (b BestDispatcherConfig) validate(at *field.Path) field.ErrorList {
	errs := append(checkAtLeastOne(at.Child("nominate"), *b.Nominate), checkPositive(at.Child("after"), b.After)...)
	for name, weight := range map[string]*float32{"fits": b.Weights.Fits, "free": b.Weights.Free, "preferred": b.Weights.Preferred, "ranThere": b.Weights.RanThere} {
		if !(*weight >= 0) {
			errs = append(errs, field.Invalid(at.Child("weights", name), float64(*weight), "must not be negative"))
		}
	}
	return errs
}

func checkDispatcher(at *field.Path, name string) field.ErrorList {
	if name == DispatcherAllAtOnce || name == DispatcherIncremental || name == DispatcherBest {
		return nil
	}
	if strings.HasPrefix(name, kueueDispatcherPrefix) {
		return field.ErrorList{field.NotSupported(at, name, []string{DispatcherAllAtOnce, DispatcherIncremental, DispatcherBest})}
	}
	return check(at, name, content.IsLabelKey)
}

func checkBindAddress(at *field.Path, address string) field.ErrorList {
	if address == Off {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(at, address, `must be host:port such as 127.0.0.1:8081, :port for all addresses, or "0" for off`)}
	}
	return nil
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func check(at *field.Path, value string, rule func(string) []string) field.ErrorList {
	if problems := rule(value); len(problems) > 0 {
		return field.ErrorList{field.Invalid(at, value, strings.Join(problems, ", "))}
	}
	return nil
}

func checkFolder(at *field.Path, folder string) field.ErrorList {
	if !filepath.IsAbs(folder) || filepath.Clean(folder) == "/" {
		return field.ErrorList{field.Invalid(at, folder, "must be an absolute path below /, such as "+DefaultKubeConfigPathPrefix)}
	}
	return nil
}

func checkAtLeastOne(at *field.Path, value int32) field.ErrorList {
	if value < 1 {
		return field.ErrorList{field.Invalid(at, value, validation.InclusiveRangeError(1, 1<<31-1))}
	}
	return nil
}

func checkNotNegative(at *field.Path, d *metav1.Duration) field.ErrorList {
	if d.Duration < 0 {
		return field.ErrorList{field.Invalid(at, d.Duration.String(), "must not be negative")}
	}
	return nil
}

func checkPositive(at *field.Path, d *metav1.Duration) field.ErrorList {
	if d.Duration <= 0 {
		return field.ErrorList{field.Invalid(at, d.Duration.String(), "must be more than 0s")}
	}
	return nil
}
