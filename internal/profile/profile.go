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
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
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
	// doubtedAfter is how old a credential has to be to be fetched anew because the cluster cannot be reached with it.
	doubtedAfter = 30 * time.Second
	// keptFor is how long a credential is kept for which nobody asks.
	keptFor = 10 * time.Minute
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
	// next is when it is to run again, ended when it last did.
	next, ended time.Time
	asked       time.Time
}

// Access is how to reach the cluster of a profile.
type Access struct {
	Config *rest.Config
	// Fingerprint is the same for the same server and credential.
	Fingerprint string
	// Next is when to ask again, as the credential is to be renewed then.
	Next time.Time
}

// Access gives the way to the profile's cluster. ErrPending: ask again once Ready is told. An error says what is wrong
// with the profile or its plugin, and holds no secret. With doubt, as the cluster cannot be reached, a credential that
// is not new is fetched anew: it may have been revoked.
func (p *Plugins) Access(profile *inventory.ClusterProfile, doubt bool) (Access, error) {
	profile = withAccessProviders(profile)
	config, err := access.New(p.Providers).BuildConfigFromCP(profile)
	if err != nil {
		return Access{}, fmt.Errorf("%w: name one of its access providers in multiKueue.clusterProfile.accessProviders", err)
	}
	cluster := p.chosen(profile).Cluster
	config.ServerName = cluster.TLSServerName // the library leaves it out
	if cluster.ProxyURL == "" {
		config.Proxy = nil // two configurations with a function are never the same
	}
	plugin := config.ExecProvider
	found, next, err := p.credential(hashOf(cluster, plugin.APIVersion, plugin.Command, plugin.Args, plugin.Env), config, doubt)
	if err != nil {
		return Access{}, err
	}
	config.ExecProvider = nil
	config.BearerToken, config.CertData, config.KeyData = found.token, found.certificate, found.key
	return Access{Config: config, Fingerprint: hashOf(cluster, found.token, found.certificate), Next: next}, nil
}

// withAccessProviders is the profile with those that it lists by their deprecated name among the others. The library
// takes them too, and warns in the log each time.
func withAccessProviders(profile *inventory.ClusterProfile) *inventory.ClusterProfile {
	out := profile.DeepCopy()
	for _, old := range profile.Status.CredentialProviders {
		isOld := func(p inventory.AccessProvider) bool { return p.Name == old.Name }
		if !slices.ContainsFunc(out.Status.AccessProviders, isOld) {
			out.Status.AccessProviders = append(out.Status.AccessProviders, old)
		}
	}
	out.Status.CredentialProviders = nil
	return out
}

// chosen is the access provider that the library takes: the first configured one that the profile lists.
func (p *Plugins) chosen(profile *inventory.ClusterProfile) (found inventory.AccessProvider) {
	for _, provider := range p.Providers {
		for _, listed := range profile.Status.AccessProviders {
			if listed.Name == provider.Name {
				found = listed
			}
		}
		if found.Name != "" {
			break
		}
	}
	return found
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
func (p *Plugins) credential(key string, config *rest.Config, doubt bool) (*credential, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	r := p.runOf(key, now)
	isDoubted := doubt && now.Sub(r.ended) >= doubtedAfter
	if !r.at && (isDoubted || !now.Before(r.next)) {
		r.at = true
		go p.fetch(r, rest.CopyConfig(config))
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

// runOf is what is known by this key; the lock is held. What nobody asks for any more is forgotten.
func (p *Plugins) runOf(key string, now time.Time) *run {
	maps.DeleteFunc(p.runs, func(other string, r *run) bool { return other != key && !r.at && now.Sub(r.asked) > keptFor })
	r := p.runs[key]
	if r == nil {
		r = &run{}
		if p.runs == nil {
			p.runs = map[string]*run{}
		}
		p.runs[key] = r
	}
	r.asked = now
	return r
}

func (p *Plugins) fetch(r *run, config *rest.Config) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(p.Deadline, DefaultDeadline))
	defer cancel()
	found, err := execute(ctx, config)
	p.mu.Lock()
	now := p.now()
	r.at, r.failure, r.next, r.ended = false, err, now.Add(tryAgain), now
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
