package demo

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/playground"
)

// jobTerms: the samples do not all fit at once.
var jobTerms = terms{
	frameworks: []string{"batch/job"},
	manager:    playground.Quota{CPU: "16", Memory: "32Gi"}, worker: playground.Quota{CPU: "8", Memory: "16Gi"},
	progress: "COMPLETIONS", resources: "jobs,workloads",
	lookEvery: 250 * time.Millisecond, stuckAfter: 2 * time.Minute, within: 10 * time.Minute,
}

// jobs is the plain demo: several batch Jobs, which compete for the quota.
type jobs struct {
	manager client.Client
	names   []string
	last    []Row
}

func (j *jobs) clear(ctx context.Context) (int, error) {
	var old batchv1.JobList
	if err := j.manager.List(ctx, &old, client.InNamespace(namespace), client.HasLabels{demoLabel}); err != nil {
		return 0, fmt.Errorf("list the jobs of earlier demos: %w", err)
	}
	for i := range old.Items {
		err := j.manager.Delete(ctx, &old.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("remove job %s of an earlier demo: %w", old.Items[i].Name, err)
		}
	}
	return len(old.Items), nil
}

func (j *jobs) submit(ctx context.Context) (created, left int, err error) {
	for _, s := range samples {
		job := s.job()
		if err := j.manager.Create(ctx, job); err != nil {
			return 0, 0, fmt.Errorf("submit job %s: %w", s.name, err)
		}
		j.names = append(j.names, job.Name)
	}
	return len(j.names), 0, nil
}

// look reads the jobs as the manager shows them, in the order of names. Settled: all are over, and so are their Workloads.
func (j *jobs) look(ctx context.Context) (rows []Row, settled bool, err error) {
	var list batchv1.JobList
	if err := j.manager.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{demoLabel}); err != nil {
		return nil, false, fmt.Errorf("list the jobs on the manager: %w", err)
	}
	var workloads kueue.WorkloadList
	if err := j.manager.List(ctx, &workloads, client.InNamespace(namespace)); err != nil {
		return nil, false, fmt.Errorf("list the Workloads on the manager: %w", err)
	}
	byName := map[string]*batchv1.Job{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	settled = true
	for _, name := range j.names {
		job := byName[name]
		if job == nil {
			return nil, false, fmt.Errorf("job %s/%s has been deleted", namespace, name)
		}
		wl := workloadOf(job, workloads.Items)
		r := rowOf(job, wl)
		settled = settled && r.Over() && wl != nil && finished(wl)
		rows = append(rows, r)
	}
	j.last = rows
	return rows, settled, nil
}

func (j *jobs) ways() map[string][]way {
	all := map[string][]way{}
	for _, r := range j.last {
		all[r.Job] = []way{{workload: r.Workload, objects: []made{{"jobs", r.Job}}}}
	}
	return all
}

func workloadOf(job *batchv1.Job, workloads []kueue.Workload) *kueue.Workload {
	for i := range workloads {
		if metav1.IsControlledBy(&workloads[i], job) {
			return &workloads[i]
		}
	}
	return nil
}
