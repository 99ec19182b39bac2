package playground

import (
	"context"
	"errors"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/playground/manifest"
)

// ToFerry lets Ferry dispatch where stock MultiKueue did: the manager's Kueue stops, Ferry starts, and Kueue comes back
// with MultiKueue off.
func (p *Playground) ToFerry(ctx context.Context) error {
	if !p.options.StockMultiKueue {
		return errors.New("stock MultiKueue does not run here")
	}
	return p.handOver(ctx, false)
}

// ToMultiKueue is the way back: Ferry stops for good, and its webhooks go.
func (p *Playground) ToMultiKueue(ctx context.Context) error {
	ferry := p.Component(ferryComponent)
	if ferry == nil {
		return errors.New("Ferry does not run here")
	}
	if err := ferry.Stop(); err != nil {
		return err
	}
	p.forget(ferry)
	hooks, err := manifest.File(filepath.Join(p.builder.Root, "config", "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		if err := client.IgnoreNotFound(p.manager.client.Delete(ctx, hook)); err != nil {
			return err
		}
	}
	return p.handOver(ctx, true)
}

func (p *Playground) handOver(ctx context.Context, toMultiKueue bool) error {
	kueue := p.manager.Component("kueue")
	if err := kueue.Stop(); err != nil {
		return err
	}
	p.options.StockMultiKueue, p.options.Ferry = toMultiKueue, !toMultiKueue
	if err := p.giveAccessAnew(ctx); err != nil {
		return err
	}
	if !toMultiKueue {
		if err := p.startFerryLate(ctx); err != nil {
			return err
		}
	}
	if _, err := p.manager.kueueConfig(); err != nil {
		return err
	}
	if err := kueue.Start(); err != nil {
		return err
	}
	return p.manager.AwaitReady(ctx)
}

// giveAccessAnew gives the present dispatcher credentials for the workers, by the links that are there.
func (p *Playground) giveAccessAnew(ctx context.Context) error {
	if err := p.manager.ensureNamespace(ctx, p.dispatcher().namespace); err != nil {
		return err
	}
	return each(ctx, p.workers, func(ctx context.Context, w *Cluster) error { return p.giveAccess(ctx, w, p.Link(w.Name)) })
}

func (p *Playground) startFerryLate(ctx context.Context) error {
	binaries, err := p.builder.All(ctx, true)
	if err != nil {
		return err
	}
	p.binaries["ferry"] = binaries["ferry"]
	return p.startFerry(ctx)
}
