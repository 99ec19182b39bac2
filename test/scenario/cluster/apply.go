package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// KueueAdmission is the field manager under which Kueue writes a Workload's admission.
const KueueAdmission = "kueue-admission"

// fieldSet is the fields of a Workload's status that one manager owns.
type fieldSet map[string]bool

const (
	conditionField = "condition/"
	checkField     = "check/"
)

// ApplyStatus is a forced server-side apply of a Workload's status by a field
// manager: what it states it owns, and what it owned and leaves out goes,
// unless somebody else owns it too. A version or UID that is not current is a conflict.
func (c *Cluster) ApplyStatus(manager string, key Key, version string, uid types.UID, status kueue.WorkloadStatus) (*kueue.Workload, error) {
	old, _ := c.objects[key].(*kueue.Workload)
	switch {
	case old == nil:
		return nil, apierrors.NewNotFound(resource(key), key.Name)
	case version != "" && version != old.ResourceVersion, uid != "" && uid != old.UID:
		return nil, apierrors.NewConflict(resource(key), key.Name, errChanged)
	}
	next := old.DeepCopy()
	next.Status = merged(old.Status, status, c.owners(key), manager)
	if err := c.replace(old, next); err != nil {
		return nil, err
	}
	c.own(key, manager, status)
	now, _ := c.objects[key].(*kueue.Workload)
	return now, nil
}

// Kueue lets a change be applied as Kueue does it: its whole admission status, in its own name.
func (c *Cluster) Kueue(key Key, change func(*kueue.Workload)) {
	old, _ := c.objects[key].(*kueue.Workload)
	if old == nil {
		return
	}
	next := old.DeepCopy()
	change(next)
	if _, err := c.ApplyStatus(KueueAdmission, key, old.ResourceVersion, old.UID, next.Status); err != nil {
		c.Violation("%s: Kueue's write of %s was refused: %v", c.Name, key, err)
	}
}

func (c *Cluster) owners(key Key) map[string]fieldSet {
	if c.owned[key] == nil {
		c.owned[key] = map[string]fieldSet{}
	}
	return c.owned[key]
}

func (c *Cluster) own(key Key, manager string, status kueue.WorkloadStatus) {
	if c.objects[key] == nil {
		return
	}
	now := explode(c.objects[key].(*kueue.Workload).Status)
	mine := fieldSet{}
	for name, value := range explode(status) {
		mine[name] = true
		for other, fields := range c.owners(key) {
			if other != manager && fields[name] && !equality.Semantic.DeepEqual(now[name], value) {
				delete(fields, name)
			}
		}
	}
	c.owners(key)[manager] = mine
}

func merged(old, applied kueue.WorkloadStatus, owners map[string]fieldSet, manager string) kueue.WorkloadStatus {
	have, want := explode(old), explode(applied)
	for name := range owners[manager] {
		if _, stated := want[name]; !stated && !othersOwn(owners, manager, name) {
			delete(have, name)
		}
	}
	for name, value := range want {
		have[name] = value
	}
	return implode(have, old, applied)
}

func othersOwn(owners map[string]fieldSet, manager, name string) bool {
	for other, fields := range owners {
		if other != manager && fields[name] {
			return true
		}
	}
	return false
}

// explode gives each separately owned field of a status a name.
func explode(s kueue.WorkloadStatus) map[string]any {
	fields := map[string]any{}
	put := func(name string, set bool, value any) {
		if set {
			fields[name] = value
		}
	}
	put("admission", s.Admission != nil, s.Admission)
	put("requeueState", s.RequeueState != nil, s.RequeueState)
	put("accumulated", s.AccumulatedPastExecutionTimeSeconds != nil, s.AccumulatedPastExecutionTimeSeconds)
	put("schedulingStats", s.SchedulingStats != nil, s.SchedulingStats)
	put("nominated", len(s.NominatedClusterNames) > 0, s.NominatedClusterNames)
	put("gates", len(s.PreemptionGates) > 0, s.PreemptionGates)
	put("clusterName", s.ClusterName != nil, s.ClusterName)
	for _, c := range s.Conditions {
		fields[conditionField+c.Type] = c
	}
	for _, c := range s.AdmissionChecks {
		fields[checkField+string(c.Name)] = c
	}
	return fields
}

// implode puts the fields together again; lists keep the order of the old status, then of the applied one.
func implode(fields map[string]any, old, applied kueue.WorkloadStatus) kueue.WorkloadStatus {
	s := kueue.WorkloadStatus{ReclaimablePods: old.ReclaimablePods}
	s.Admission, _ = fields["admission"].(*kueue.Admission)
	s.RequeueState, _ = fields["requeueState"].(*kueue.RequeueState)
	s.AccumulatedPastExecutionTimeSeconds, _ = fields["accumulated"].(*int32)
	s.SchedulingStats, _ = fields["schedulingStats"].(*kueue.SchedulingStats)
	s.NominatedClusterNames, _ = fields["nominated"].([]string)
	s.PreemptionGates, _ = fields["gates"].([]kueue.PreemptionGateState)
	s.ClusterName, _ = fields["clusterName"].(*string)
	for _, name := range listed(old, applied) {
		switch value := fields[name].(type) {
		case metav1.Condition:
			s.Conditions = append(s.Conditions, value)
		case kueue.AdmissionCheckState:
			s.AdmissionChecks = append(s.AdmissionChecks, value)
		}
		delete(fields, name)
	}
	return s
}

func listed(statuses ...kueue.WorkloadStatus) []string {
	var names []string
	for _, s := range statuses {
		for _, c := range s.Conditions {
			names = append(names, conditionField+c.Type)
		}
		for _, c := range s.AdmissionChecks {
			names = append(names, checkField+string(c.Name))
		}
	}
	return names
}

// Owner names the managers that own a field of a Workload's status, for tests of this model.
func (c *Cluster) Owner(key Key, field string) string {
	var names []string
	for manager, fields := range c.owned[key] {
		if fields[field] {
			names = append(names, manager)
		}
	}
	return strings.Join(names, ",")
}
