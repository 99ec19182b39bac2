package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	kindtable "ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/playground"
	"ferry.dev/ferry/playground/manifest"
)

const (
	kindsWithin = 10 * time.Minute
	// clearWithin bounds the wait for the end of an earlier demo's objects.
	clearWithin = 2 * time.Minute
	pollEvery   = 200 * time.Millisecond
	atATime     = 3
)

// kindTerms: all kinds fit at once.
func kindTerms(chosen []kind) terms {
	operators, frameworks := needs(chosen)
	return terms{
		// Jobs are always on, lest the plain demo find them off.
		operators: operators, frameworks: append(frameworks, jobTerms.frameworks...), runFor: 5 * time.Second,
		manager: playground.Quota{CPU: "64", Memory: "128Gi"}, worker: playground.Quota{CPU: "32", Memory: "64Gi"},
		progress: "PROGRESS", resources: resources(chosen),
		lookEvery: time.Second, stuckAfter: kindsWithin, within: kindsWithin,
		note: noteOn(chosen),
	}
}

// noteOn says what the summary leaves open.
func noteOn(chosen []kind) string {
	text := "A sample with several Workloads counts with the slowest dispatch.\n"
	if slices.ContainsFunc(chosen, func(k kind) bool { return k.serves || k.patience != "" }) {
		text += "What serves, and a CronJob, goes on until it is deleted, and uses quota.\n"
	}
	return text
}

// resources are what to ask kubectl for: few kinds by their names.
func resources(chosen []kind) string {
	if len(chosen) > 4 {
		return "workloads,pods"
	}
	all := []string{"workloads"}
	for _, k := range chosen {
		if k.name == "podgroup" {
			k.name = "pod"
		}
		all = append(all, k.name)
	}
	return strings.Join(all, ",")
}

// kinds is the demo of one sample per kind.
type kinds struct {
	manager   client.Client
	examples  []example
	submitted int // of them, so far
	// found are the Workloads of each example, as last looked at.
	found map[string][]kueue.Workload
	last  []Row
}

func newKinds(manager client.Client, root string, chosen []kind) (*kinds, error) {
	k := &kinds{manager: manager, found: map[string][]kueue.Workload{}}
	for _, row := range chosen {
		e, err := row.example(root)
		if err != nil {
			return nil, err
		}
		k.examples = append(k.examples, e)
	}
	return k, nil
}

// each visits all objects.
func (k *kinds) each(visit func(*unstructured.Unstructured) error) error {
	for _, e := range k.examples {
		for _, o := range e.objects {
			if err := visit(o); err != nil {
				return fmt.Errorf("%s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
			}
		}
	}
	return nil
}

// clear deletes what an earlier demo left under the names of the samples, and waits until it is gone.
func (k *kinds) clear(ctx context.Context) (int, error) {
	var old []*unstructured.Unstructured
	err := k.each(func(o *unstructured.Unstructured) error {
		live, err := k.read(ctx, o)
		if live == nil || err != nil {
			return err
		}
		if _, ours := live.GetLabels()[demoLabel]; !ours {
			return errors.New("is there, and no demo made it; delete it first")
		}
		old = append(old, live)
		return client.IgnoreNotFound(k.manager.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, clearWithin, fmt.Errorf("an earlier demo's jobs are still there after %s", clearWithin))
	defer cancel()
	for _, o := range old {
		for {
			live, err := k.read(ctx, o)
			if err != nil {
				return 0, err
			}
			if live == nil || live.GetUID() != o.GetUID() {
				break
			}
			if err := pause(ctx, pollEvery); err != nil {
				return 0, err
			}
		}
	}
	return len(old), nil
}

// read is the object as the manager has it now; nil when it has none.
func (k *kinds) read(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := manifest.Object(o.GetAPIVersion(), o.GetKind(), "", "")
	err := k.manager.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// submit creates a few samples at a time: all at once they would keep a small machine from showing anything.
func (k *kinds) submit(ctx context.Context) (created, left int, err error) {
	next := k.examples[k.submitted:min(k.submitted+atATime, len(k.examples))]
	for _, e := range next {
		for _, o := range e.objects {
			if err := k.manager.Create(ctx, o.DeepCopy()); err != nil {
				return 0, 0, fmt.Errorf("submit %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
			}
		}
	}
	k.submitted += len(next)
	return k.submitted, len(k.examples) - k.submitted, nil
}

// look reads the examples that were submitted as the manager shows them. Settled: each is finished, or ready if it serves.
func (k *kinds) look(ctx context.Context) (rows []Row, settled bool, err error) {
	live, err := k.live(ctx)
	if err != nil {
		return nil, false, err
	}
	var workloads kueue.WorkloadList
	if err := k.manager.List(ctx, &workloads, client.InNamespace(namespace)); err != nil {
		return nil, false, fmt.Errorf("list the Workloads on the manager: %w", err)
	}
	owned, err := k.owners(ctx)
	if err != nil {
		return nil, false, err
	}
	settled = true
	for i, e := range k.examples[:k.submitted] {
		k.found[e.title()] = owned.of(live[i], workloads.Items)
		r := steady(k.last, i, e.row(live[i], k.found[e.title()]))
		settled = settled && r.Over()
		rows = append(rows, r)
	}
	k.last = rows
	return rows, settled, nil
}

// steady: some kinds say nothing between the end of their pods and their own. One that ran on a worker that has it still runs.
func steady(before []Row, i int, now Row) Row {
	if i < len(before) && before[i].State == Running && now.State == Placing && before[i].Worker == now.Worker {
		now.State, now.Why = Running, ""
	}
	return now
}

// live are the objects of each example as they are now. All are asked for at once: the API server is busy with the jobs.
func (k *kinds) live(ctx context.Context) ([][]*unstructured.Unstructured, error) {
	live, failures := make([][]*unstructured.Unstructured, k.submitted), make([]error, k.submitted)
	var all sync.WaitGroup
	for i, e := range k.examples[:k.submitted] {
		all.Go(func() {
			for _, o := range e.objects {
				now, err := k.read(ctx, o)
				if err == nil && now == nil {
					err = errors.New("has been deleted")
				}
				if err != nil {
					failures[i] = fmt.Errorf("%s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
					return
				}
				live[i] = append(live[i], now)
			}
		})
	}
	all.Wait()
	return live, errors.Join(failures...)
}

// between are the kinds that may stand between a Workload and what the user wrote.
var between = []schema.GroupVersionKind{
	{Version: "v1", Kind: "PodList"}, {Group: "apps", Version: "v1", Kind: "ReplicaSetList"}, {Group: "batch", Version: "v1", Kind: "JobList"},
}

func (k *kinds) owners(ctx context.Context) (owners, error) {
	all := owners{}
	for _, gvk := range between {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		if err := k.manager.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("read a %s on the manager: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			all[list.Items[i].UID] = list.Items[i].OwnerReferences
		}
	}
	return all, nil
}

// ways: a Workload's owner is what Ferry makes on the worker.
func (k *kinds) ways() map[string][]way {
	plurals := map[schema.GroupKind]string{}
	for _, row := range kindtable.All() {
		plurals[row.GVK.GroupKind()] = row.Plural
	}
	all := map[string][]way{}
	for title, workloads := range k.found {
		for _, wl := range workloads {
			w := way{workload: wl.Name}
			for _, owner := range wl.OwnerReferences {
				gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
				w.objects = append(w.objects, made{plurals[gvk.GroupKind()], owner.Name})
			}
			all[title] = append(all[title], w)
		}
	}
	return all
}
