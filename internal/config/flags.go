package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Flags are the command line flags of Ferry. Those that name a field of Configuration override the file.
type Flags struct {
	ConfigFile string    // path of the config file; empty for the defaults alone
	Kubeconfig string    // path of the manager's kubeconfig; empty for the one of the pod
	Verbosity  int       // 0 tells what an operator needs, 2 each decision, 4 each request
	LogFormat  LogFormat // how log lines look

	overrides Configuration // values of the flags below, with overridden telling where each goes
	port      int
	elect     bool
	secure    bool
	set       *pflag.FlagSet
}

// LogFormat is json or text.
type LogFormat string

// The formats of log lines.
const (
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)

// String returns the format's name.
func (l *LogFormat) String() string { return string(*l) }

// Type names the kind of value in the usage text.
func (l *LogFormat) Type() string { return "json|text" }

// Set accepts json or text.
func (l *LogFormat) Set(value string) error {
	if !slices.Contains([]LogFormat{LogJSON, LogText}, LogFormat(value)) {
		return fmt.Errorf("%q is not a log format: use json or text", value)
	}
	*l = LogFormat(value)
	return nil
}

// AddTo defines the flags in fs. Call it once, before parsing.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	f.set, f.LogFormat = fs, LogJSON
	o := &f.overrides
	fs.StringVar(&f.ConfigFile, "config", "", "configuration `file`, of Ferry's own kind or Kueue's; without it the defaults hold")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the manager; without it the pod's service account is used")
	fs.StringVar(&o.Namespace, "namespace", "", "overrides namespace")
	fs.StringVar(&o.Webhook.Host, "webhook-host", "", "overrides webhook.host")
	fs.IntVar(&f.port, "webhook-port", 0, "overrides webhook.port")
	fs.StringVar(&o.Webhook.CertDir, "webhook-cert-dir", "", "overrides webhook.certDir")
	fs.StringVar(&o.Health.HealthProbeBindAddress, "health-probe-bind-address", "", "overrides health.healthProbeBindAddress")
	fs.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", "", "overrides metrics.bindAddress")
	fs.BoolVar(&f.secure, "metrics-secure", false, "overrides metrics.secureServing")
	fs.BoolVar(&f.elect, "leader-elect", false, "overrides leaderElection.leaderElect")
	fs.IntVarP(&f.Verbosity, "v", "v", 0, "how much is logged: 0 what an operator needs, 2 each decision, 4 each request")
	fs.Var(&f.LogFormat, "log-format", "how log lines look")
}

// Apply sets in c what the flags given on the command line say; flags not given change nothing.
// Call it after Load and before SetDefaults.
func (f *Flags) Apply(c *Configuration) {
	o := &f.overrides
	for name, set := range map[string]func(){
		"namespace":                 func() { c.Namespace = o.Namespace },
		"webhook-host":              func() { c.Webhook.Host = o.Webhook.Host },
		"webhook-port":              func() { c.Webhook.Port = new(f.port) },
		"webhook-cert-dir":          func() { c.Webhook.CertDir = o.Webhook.CertDir },
		"health-probe-bind-address": func() { c.Health.HealthProbeBindAddress = o.Health.HealthProbeBindAddress },
		"metrics-bind-address":      func() { c.Metrics.BindAddress = o.Metrics.BindAddress },
		"metrics-secure":            func() { c.Metrics.SecureServing = new(f.secure) },
		"leader-elect":              func() { c.LeaderElection.LeaderElect = new(f.elect) },
	} {
		if f.set.Changed(name) {
			set()
		}
	}
}

// Configuration reads the file that --config names, applies the other flags, fills in the defaults and validates.
// known lists the frameworks that this Ferry can dispatch; notes are to be logged. The error names the file and
// everything that is wrong.
func (f *Flags) Configuration(known []string) (c *Configuration, notes []string, err error) {
	c = &Configuration{}
	if f.set.Changed("config") {
		if c, notes, err = f.readFile(known); err != nil {
			return nil, nil, err
		}
	}
	f.Apply(c)
	c.SetDefaults()
	if len(c.Integrations.Frameworks) == 0 {
		c.Integrations.Frameworks = slices.Clone(known)
	}
	if err := c.Validate(known); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.source(), err)
	}
	return c, append(notes, c.turnOnNamed(known)...), nil
}

func (f *Flags) readFile(known []string) (*Configuration, []string, error) {
	if strings.TrimSpace(f.ConfigFile) == "" {
		return nil, nil, errors.New("--config is empty: name a file, or leave the flag out to run with the defaults")
	}
	data, err := os.ReadFile(f.ConfigFile)
	if err != nil {
		return nil, nil, fmt.Errorf("--config: %w", err)
	}
	c, notes, err := Load(data, known)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.ConfigFile, err)
	}
	return c, notes, nil
}

func (f *Flags) source() string {
	if f.ConfigFile == "" {
		return "command line"
	}
	return f.ConfigFile
}
