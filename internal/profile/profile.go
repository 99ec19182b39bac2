// Package profile gets credentials for workers that a ClusterProfile describes, by running the plugins that the configuration names.
package profile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

const (
	// DefaultDeadline is how long a plugin may run.
	DefaultDeadline = 30 * time.Second
	// renewAlways is when a credential is fetched anew that does not say when it expires.
	renewAlways = 10 * time.Minute
	// tryAgain is how long a plugin that failed is left alone.
	tryAgain = 10 * time.Second
)

// ErrPending says that a plugin runs, and nothing is known yet.
var ErrPending = errors.New("its credential plugin is running")

// Plugins fetch credentials. One that is at work holds up nobody; what it found is kept until it expires, and renewed
// before. Profiles that lead to the same server by the same plugin share it.
type Plugins struct {
	// Providers are those of the configuration; no other plugin is ever run.
	Providers []access.Provider
	// Deadline is how long a plugin may run; DefaultDeadline if zero.
	Deadline time.Duration
	// Ready is told that a plugin came to an end.
	Ready func()
	Clock clock.PassiveClock // the real one if nil

	mu   sync.Mutex
	runs map[string]*run
}

// run is what is known of one plugin for one server.
type run struct {
	at      bool // it runs now
	found   *credential
	failure error
	// next is when it is to run again.
	next time.Time
}

// Access is how to reach the cluster of a profile.
type Access struct {
	Config *rest.Config
	// Fingerprint is the same for the same server and credential.
	Fingerprint string
	// Next is when to ask again, as the credential is to be renewed then.
	Next time.Time
}

// Access gives the way to the profile's cluster. ErrPending: ask again once Ready is told; Next is set with every other
// error. An error says what is wrong with the profile or its plugin, and holds no secret.
func (p *Plugins) Access(profile *inventory.ClusterProfile) (Access, error) {
	config, err := access.New(p.Providers).BuildConfigFromCP(profile)
	if err != nil {
		return Access{}, fmt.Errorf("%w: name one of its access providers in multiKueue.clusterProfile.accessProviders", err)
	}
	plugin := config.ExecProvider
	found, next, err := p.credential(keyOf(config, plugin), config, plugin)
	if err != nil {
		return Access{Next: next}, err
	}
	config.ExecProvider = nil
	config.BearerToken, config.CertData, config.KeyData = found.token, found.certificate, found.key
	if proxy, err := config.Proxy(nil); proxy == nil && err == nil {
		config.Proxy = nil // two configurations with a function are never the same
	}
	return Access{Config: config, Fingerprint: hashOf(config.Host, config.CAData, found.token, found.certificate), Next: next}, nil
}

func keyOf(config *rest.Config, plugin *clientcmdapi.ExecConfig) string {
	return hashOf(config.Host, config.CAData, plugin.APIVersion, plugin.Command, plugin.Args, plugin.Env, plugin.Config)
}

func hashOf(parts ...any) string {
	raw, err := json.Marshal(parts)
	if err != nil {
		raw = fmt.Append(nil, parts...)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func (p *Plugins) now() time.Time {
	if p.Clock == nil {
		return time.Now()
	}
	return p.Clock.Now()
}

// credential is the one that is known, and when it is to be renewed. It starts the plugin where that is due.
func (p *Plugins) credential(key string, config *rest.Config, plugin *clientcmdapi.ExecConfig) (*credential, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[key]
	if r == nil {
		r = &run{}
		if p.runs == nil {
			p.runs = map[string]*run{}
		}
		p.runs[key] = r
	}
	now := p.now()
	if !r.at && !now.Before(r.next) {
		r.at = true
		go p.fetch(r, rest.CopyConfig(config), plugin)
	}
	switch {
	case r.found != nil && (r.found.expires.IsZero() || now.Before(r.found.expires)):
		return r.found, r.next, nil
	case r.failure != nil:
		return nil, r.next, r.failure
	default:
		return nil, r.next, ErrPending
	}
}

func (p *Plugins) fetch(r *run, config *rest.Config, plugin *clientcmdapi.ExecConfig) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(p.Deadline, DefaultDeadline))
	defer cancel()
	found, err := execute(ctx, config, plugin)
	p.mu.Lock()
	now := p.now()
	r.at, r.failure, r.next = false, err, now.Add(tryAgain)
	if err == nil {
		r.found, r.next = found, renewal(found.expires, now)
	}
	p.mu.Unlock()
	if p.Ready != nil {
		p.Ready()
	}
}

// renewal is when four fifths of a credential's life are over.
func renewal(expires, now time.Time) time.Time {
	if expires.IsZero() {
		return now.Add(renewAlways)
	}
	return now.Add(max(expires.Sub(now)*4/5, time.Second))
}
