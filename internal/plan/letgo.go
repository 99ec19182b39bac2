package plan

import "slices"

// letGo frees copies that are being deleted on a worker and that Kueue there
// holds for a Workload that is gone: nobody else would ever let them go.
func letGo(s Snapshot, p *Plan) {
	if s.Kind == nil || s.Kind.Held == "" {
		return
	}
	for _, w := range s.Workers {
		if !w.Reachable || len(w.Workloads) > 0 {
			continue
		}
		for _, job := range w.Jobs {
			if !isThere(job) && slices.Contains(job.GetFinalizers(), s.Kind.Held) {
				p.worker(w.Name, LetGo{Copy: job, Finalizer: s.Kind.Held})
			}
		}
	}
}
