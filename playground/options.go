package playground

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"ferry.dev/ferry/playground/operator"
)

// Defaults of Options.
const (
	DefaultName           = "demo"
	DefaultWorkers        = 2
	DefaultNodesPerWorker = 2
	DefaultJobRunsFor     = 2 * time.Second
)

// Options say what a playground is made of. The zero value is a manager and two workers, without Ferry.
type Options struct {
	// Name tells playgrounds apart; it names the state folder. Default "demo".
	Name string
	// Workers is how many worker clusters there are, called w1, w2, …. Default 2.
	Workers int
	// Frameworks are the integrations that Kueue has on, in every cluster; "all" stands for all that Operators may name
	// and those of Kubernetes. Default batch/job. Those of Operators and CRDsOf are on as well.
	Frameworks []string
	// Operators are the job operators that run on every worker, by name; "all" stands for all. See package operator.
	// StartOperator starts more of them later.
	Operators []string
	// CRDsOf are operators whose CRDs every cluster gets before Kueue starts. StartOperator then need not restart Kueue.
	CRDsOf []string
	// CRDs are files, or folders of files, of CustomResourceDefinitions that every cluster gets before Kueue starts.
	CRDs []string
	// Ferry builds and runs ./cmd/ferry on the manager.
	Ferry bool
	// FerryConfig is Ferry's config file as a text/template over FerryAddresses. Default DefaultFerryConfig.
	FerryConfig string
	// FerryArgs are further flags for Ferry.
	FerryArgs []string
	// WorkerGates are feature gates of Kueue on the workers, besides those that it has on by itself.
	WorkerGates map[string]bool
	// StockMultiKueue leaves MultiKueue on in the manager's Kueue, with credentials for the workers in its
	// namespace. It excludes Ferry.
	StockMultiKueue bool
	// MultiKueueFrameworks are custom kinds that stock MultiKueue dispatches, as Kueue names them: Kind.version.group.
	MultiKueueFrameworks []string
	// MultiKueueOrigin is what stock MultiKueue marks its copies with. Default is Kueue's, "multikueue".
	MultiKueueOrigin string
	// JobRunsFor is how long pods that are meant to end run, unless annotated otherwise. Default 2s.
	JobRunsFor time.Duration
	// NodesPerWorker is how many fake nodes each worker has. Default 2.
	NodesPerWorker int
	// Alone waits with the start until no other playground that has this set runs on the machine: for fleets with all
	// operators, which take gigabytes.
	Alone bool
	// Keep leaves the state folder, with logs and audit logs, after Stop and after a failed Start.
	Keep bool
	// Progress gets a line for each step of the start. nil keeps quiet.
	Progress io.Writer `json:"-"`
}

// Binaries, sources and single playgrounds share a folder; these names are not for playgrounds.
var reservedNames = []string{"bin", "src"}

var goodName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckName says whether a playground may be called so.
func CheckName(name string) error {
	if !goodName.MatchString(name) || slices.Contains(reservedNames, name) {
		return fmt.Errorf("%q is no name for a playground: use up to 40 of a-z, 0-9 and -, and neither of %v", name, reservedNames)
	}
	return nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if len(o.Frameworks) == 0 {
		o.Frameworks = []string{"batch/job"}
	}
	rows, err := operator.Resolve(slices.Concat(o.Operators, o.CRDsOf)...)
	if err != nil {
		return o, err
	}
	o.Frameworks = operator.Frameworks(o.Frameworks, rows)
	if o.FerryConfig == "" {
		o.FerryConfig = DefaultFerryConfig
	}
	if o.JobRunsFor == 0 {
		o.JobRunsFor = DefaultJobRunsFor
	}
	if o.NodesPerWorker == 0 {
		o.NodesPerWorker = DefaultNodesPerWorker
	}
	return o, o.check()
}

func (o Options) check() error {
	if err := CheckName(o.Name); err != nil {
		return err
	}
	if o.Workers < 0 || o.NodesPerWorker < 0 || o.JobRunsFor < 0 {
		return errors.New("workers, nodes per worker and the time that jobs run for cannot be negative")
	}
	if o.Ferry && o.StockMultiKueue {
		return errors.New("a playground has either Ferry or stock MultiKueue, not both: they would fight over the same objects")
	}
	return nil
}
