package e2e_test

import (
	"os"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// logLines is how much of Ferry's log a failure shows.
const logLines = 60

// dump tells what a failed test left behind: objects and events of its namespace, and Ferry's log about them.
func (s *site) dump() {
	for _, cluster := range fleet.Clusters() {
		for _, list := range []client.ObjectList{&kueue.WorkloadList{}, &batchv1.JobList{}, &kueue.MultiKueueClusterList{}} {
			if _, clusters := list.(*kueue.MultiKueueClusterList); clusters && !cluster.IsManager() {
				continue
			}
			if err := cluster.Client().List(s.ctx, list, client.InNamespace(s.namespace)); err != nil {
				s.t.Logf("%s: %v", cluster.Name, err)
				continue
			}
			s.t.Logf("--- %s: %T\n%s", cluster.Name, list, brief(list))
		}
	}
	var events corev1.EventList
	if err := manager().List(s.ctx, &events, client.InNamespace(s.namespace)); err == nil {
		for _, e := range events.Items {
			s.t.Logf("event %s %s %s/%s: %s", e.LastTimestamp.Format("15:04:05"), e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		}
	}
	s.t.Logf("--- ferry.log about %s\n%s", s.namespace, s.ferryLog())
}

// brief leaves out of the objects what seldom helps.
func brief(list client.ObjectList) string {
	switch l := list.(type) {
	case *kueue.WorkloadList:
		for i := range l.Items {
			l.Items[i].ManagedFields, l.Items[i].Spec.PodSets = nil, nil
		}
	case *batchv1.JobList:
		for i := range l.Items {
			l.Items[i].ManagedFields, l.Items[i].Spec.Template = nil, corev1.PodTemplateSpec{}
		}
	case *kueue.MultiKueueClusterList:
		for i := range l.Items {
			l.Items[i].ManagedFields = nil
		}
	}
	out, err := yaml.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// ferryLog is the end of Ferry's log, of the lines about this site and of errors.
func (s *site) ferryLog() string {
	data, err := os.ReadFile(fleet.Component("ferry").LogFile())
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, s.namespace+"/") || strings.Contains(strings.ToLower(line), "error") || strings.Contains(line, "fleet") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-logLines):], "")
}
