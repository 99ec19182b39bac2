package playground

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ferry.dev/ferry/playground/manifest"
	"ferry.dev/ferry/playground/operator"
)

// StartOperator builds the named operator if need be, gives its CRDs to all clusters, and runs it on the workers (some
// run on the manager too), after those that it needs. It returns once they are ready for jobs; one that runs already
// is left alone. Where Kueue started without the CRDs it is restarted: by itself it may look for them only every
// two minutes.
func (p *Playground) StartOperator(ctx context.Context, name string) error {
	rows, err := operator.Resolve(name)
	if err != nil {
		return err
	}
	return p.startOperators(ctx, rows)
}

func (p *Playground) startOperators(ctx context.Context, rows []operator.Row) error {
	p.operating.Lock()
	defer p.operating.Unlock()
	for _, row := range rows {
		if err := p.startOperator(ctx, row); err != nil {
			return fmt.Errorf("start operator %s: %w", row.Name, err)
		}
	}
	return nil
}

func (p *Playground) startOperator(ctx context.Context, row operator.Row) error {
	for _, framework := range row.Frameworks {
		if !slices.Contains(p.options.Frameworks, framework) {
			return fmt.Errorf("framework %s is off in this playground's Kueue: name it, or %q, in Options.Frameworks", framework, operator.All)
		}
	}
	binary, err := p.builder.Operator(ctx, row.Name)
	if err != nil {
		return err
	}
	dir, err := p.builder.OperatorDir(ctx, row.Name)
	if err != nil {
		return err
	}
	err = each(ctx, p.Clusters(), func(ctx context.Context, c *Cluster) error {
		if err := c.installOperatorCRDs(ctx, row, dir); err != nil {
			return err
		}
		if !c.IsManager() || row.OnManager {
			if err := c.runOperator(ctx, row, binary, dir); err != nil {
				return err
			}
		}
		return c.applyFiles(ctx, dir, row.Objects)
	})
	if err != nil {
		return err
	}
	p.say("%s is ready", row.Name)
	return nil
}

// StopOperator ends an operator's processes and takes its webhooks away, which nobody would answer. Its
// components are gone then. CRDs and objects stay, and so do operators that it needs. Stopping what does not run is fine.
func (p *Playground) StopOperator(ctx context.Context, name string) error {
	row, err := operator.Find(name)
	if err != nil {
		return err
	}
	p.operating.Lock()
	defer p.operating.Unlock()
	dir, err := p.builder.OperatorDir(ctx, row.Name)
	if err != nil {
		return err
	}
	return each(ctx, p.Clusters(), func(ctx context.Context, c *Cluster) error {
		process := c.Component(row.Name)
		if process == nil {
			return nil
		}
		if err := c.removeWebhooks(ctx, row, dir); err != nil {
			return err
		}
		if err := process.Stop(); err != nil {
			return err
		}
		p.forget(process)
		if row.Namespace == "" {
			return nil
		}
		// One that starts later would wait for the end of a lease that nobody holds any more.
		return insist(ctx, "remove the leases of "+row.Name+" from "+c.Name, func(ctx context.Context) error {
			return client.IgnoreNotFound(c.client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(row.Namespace)))
		}, c.apiserver)
	})
}

// InstallOperatorCRDs gives the CRDs of an operator to one cluster, and makes Kueue and the operator there, if it runs,
// see them. What is there already is left alone.
func (p *Playground) InstallOperatorCRDs(ctx context.Context, cluster, name string) error {
	return p.changeCRDs(ctx, cluster, name, func(c *Cluster, row operator.Row, dir string) error {
		return c.installOperatorCRDs(ctx, row, dir)
	})
}

// RemoveOperatorCRDs takes the CRDs of an operator from one cluster, with all objects of their kinds, and returns once
// they are gone. Finalizers are waited for.
func (p *Playground) RemoveOperatorCRDs(ctx context.Context, cluster, name string) error {
	return p.changeCRDs(ctx, cluster, name, func(c *Cluster, row operator.Row, dir string) error {
		crds, err := readManifests(within(dir, row.CRDs))
		if err != nil {
			return err
		}
		if err := c.remove(ctx, crds...); err != nil {
			return err
		}
		return await(ctx, "the end of "+row.Name+"'s kinds on "+c.Name, func(ctx context.Context) error {
			for _, crd := range crds {
				if err := c.notServed(ctx, crd); err != nil {
					return err
				}
			}
			return nil
		}, c.apiserver)
	})
}

func (p *Playground) changeCRDs(ctx context.Context, cluster, name string, change func(*Cluster, operator.Row, string) error) error {
	row, err := operator.Find(name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(p.Clusters(), func(c *Cluster) bool { return c.Name == cluster })
	if i < 0 {
		return fmt.Errorf("no cluster %q", cluster)
	}
	p.operating.Lock()
	defer p.operating.Unlock()
	dir, err := p.builder.OperatorDir(ctx, row.Name)
	if err != nil {
		return err
	}
	return change(p.Clusters()[i], row, dir)
}

// buildOperators comes before the clusters start: a build takes the whole machine for minutes.
func (p *Playground) buildOperators(ctx context.Context, rows []operator.Row) error {
	for _, row := range rows {
		if _, err := p.builder.Operator(ctx, row.Name); err != nil {
			return err
		}
	}
	return nil
}

// firstCRDs are the paths of the CRDs that clusters get before Kueue starts.
func (p *Playground) firstCRDs(ctx context.Context) ([]string, error) {
	rows, err := operator.Resolve(slices.Concat(p.options.Operators, p.options.CRDsOf)...)
	if err != nil {
		return nil, err
	}
	paths := slices.Clone(p.options.CRDs)
	for _, row := range rows {
		dir, err := p.builder.OperatorDir(ctx, row.Name)
		if err != nil {
			return nil, err
		}
		paths = append(paths, within(dir, row.CRDs)...)
	}
	return paths, nil
}

func within(dir string, paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, filepath.Join(dir, filepath.FromSlash(path)))
	}
	return all
}

func (c *Cluster) applyFiles(ctx context.Context, dir string, paths []string) error {
	objects, err := readManifests(within(dir, paths))
	if err != nil {
		return err
	}
	return c.apply(ctx, objects...)
}

// installOperatorCRDs restarts Kueue, and the operator if it runs, when CRDs came that were not there.
func (c *Cluster) installOperatorCRDs(ctx context.Context, row operator.Row, dir string) error {
	crds, err := readManifests(within(dir, row.CRDs))
	if err != nil {
		return err
	}
	missing, err := c.missing(ctx, crds)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := c.installCRDs(ctx, missing); err != nil {
		return err
	}
	if err := c.Component("kueue").Restart(); err != nil {
		return err
	}
	if running := c.Component(row.Name); running != nil && running.Running() {
		if err := errors.Join(running.Restart(), c.awaitOperator(ctx, row)); err != nil {
			return err
		}
	}
	return c.AwaitReady(ctx)
}

// missing are the CRDs that the cluster does not have.
func (c *Cluster) missing(ctx context.Context, crds []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var missing []*unstructured.Unstructured
	for _, crd := range crds {
		found := false
		err := insist(ctx, "look for CRD "+crd.GetName()+" on "+c.Name, func(ctx context.Context) error {
			err := c.client.Get(ctx, client.ObjectKeyFromObject(crd), manifest.Object(crd.GetAPIVersion(), crd.GetKind(), "", ""))
			found = err == nil
			return client.IgnoreNotFound(err)
		}, c.apiserver)
		if err != nil {
			return nil, err
		}
		if !found {
			missing = append(missing, crd)
		}
	}
	return missing, nil
}

// notServed is an error while the API server serves the CRD's kind, which it may do for a moment after the CRD went.
func (c *Cluster) notServed(ctx context.Context, crd *unstructured.Unstructured) error {
	list, err := manifest.ListOf(crd)
	if err != nil {
		return err
	}
	err = c.client.List(ctx, list, client.Limit(1))
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s of %s is still served", crd.GetName(), c.Name)
}
