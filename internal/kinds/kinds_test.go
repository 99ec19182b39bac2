package kinds_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
)

func workload(name string, change ...func(*kueue.Workload)) *kueue.Workload {
	priority := int32(5)
	wl := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: "wl-uid", Labels: map[string]string{kinds.JobUIDLabel: "job-uid", "team": "a"}},
		Spec:       kueue.WorkloadSpec{QueueName: "team", Priority: &priority, PodSets: []kueue.PodSet{{Name: "main", Count: 2}}},
	}
	for _, c := range change {
		c(wl)
	}
	return wl
}

func owner(kind, apiVersion, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: "x", Controller: &controller}
}

func TestOwner(t *testing.T) {
	owners := func(refs ...metav1.OwnerReference) func(*kueue.Workload) {
		return func(wl *kueue.Workload) { wl.OwnerReferences = refs }
	}
	named := func(gvk, name string) func(*kueue.Workload) {
		return func(wl *kueue.Workload) {
			wl.Annotations = map[string]string{"kueue.x-k8s.io/job-owner-gvk": gvk, "kueue.x-k8s.io/job-owner-name": name}
		}
	}
	job := owner("Job", "batch/v1", "train", true)
	for name, c := range map[string]struct {
		wl   *kueue.Workload
		want string
	}{
		"controller":            {workload("w", owners(owner("Pod", "v1", "p", false), job)), "Job.batch/team-a/train"},
		"owner, no controller":  {workload("w", owners(owner("Pod", "v1", "p", false), owner("Pod", "v1", "q", false))), "Pod/team-a/p"},
		"named by annotations":  {workload("w", owners(job), named("leaderworkerset.x-k8s.io/v1, Kind=LeaderWorkerSet", "lws")), "LeaderWorkerSet.leaderworkerset.x-k8s.io/team-a/lws"},
		"annotation, no name":   {workload("w", owners(job), named("v1, Kind=Pod", "")), "Job.batch/team-a/train"},
		"annotation, not a GVK": {workload("w", owners(job), named("Pod", "p")), "Job.batch/team-a/train"},
		"nobody":                {workload("w"), "Workload.kueue.x-k8s.io/team-a/w"},
	} {
		t.Run(name, func(t *testing.T) {
			ref, gvk := kinds.Owner(c.wl)
			if ref.String() != c.want {
				t.Errorf("owner is %s, want %s", ref, c.want)
			}
			if gvk.GroupKind().String() != ref.Kind {
				t.Errorf("GVK %s does not fit reference %s", gvk, ref)
			}
		})
	}
}

func TestCopyOfNeedsAllMarks(t *testing.T) {
	ref := kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}
	made := func() *kueue.Workload { return kinds.ProjectWorkload(workload("w"), ref, marks) }
	if got, ok := kinds.CopyOf(made()); !ok || got != ref {
		t.Fatalf("CopyOf = %v, %v; want %v", got, ok, ref)
	}
	for name, spoil := range map[string]func(*kueue.Workload){
		"no origin":     func(wl *kueue.Workload) { delete(wl.Labels, kueue.MultiKueueOriginLabel) },
		"no origin UID": func(wl *kueue.Workload) { delete(wl.Annotations, kueue.MultiKueueOriginUIDAnnotation) },
		"no job":        func(wl *kueue.Workload) { delete(wl.Annotations, kinds.JobAnnotation) },
	} {
		wl := made()
		spoil(wl)
		if kinds.Ours(wl) {
			t.Errorf("%s: Ours", name)
		}
		if _, ok := kinds.CopyOf(wl); ok {
			t.Errorf("%s: CopyOf finds a job", name)
		}
	}
	garbled := made()
	garbled.Annotations[kinds.JobAnnotation] = "no-slash"
	if _, ok := kinds.CopyOf(garbled); ok {
		t.Error("CopyOf reads a garbled annotation")
	}
}

func TestIsCopyOf(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": map[string]any{}}}
	job.SetNamespace("team-a")
	job.SetName("train")
	job.SetUID("u")
	made := kinds.NewTable([]string{"ray.io/rayjob"}).Rows()[0].Project(job, workload("w"), marks)
	if !kinds.IsCopyOf(made, kinds.RefOf(job)) {
		t.Error("the copy is not taken for one")
	}
	// What KubeRay makes of it: another kind, with the same labels and annotations.
	child := made.DeepCopy()
	child.SetKind("RayCluster")
	for _, name := range []string{"train", "train-x7k2p"} {
		child.SetName(name)
		if kinds.IsCopyOf(child, kinds.RefOf(child)) || kinds.IsCopyOf(child, kinds.RefOf(job)) {
			t.Errorf("the cluster %s of the RayJob's copy is taken for a copy", name)
		}
	}
}

func TestProjectWorkload(t *testing.T) {
	wl := workload("w", func(wl *kueue.Workload) {
		wl.Finalizers = []string{"kueue.x-k8s.io/resource-in-use"}
		wl.OwnerReferences = []metav1.OwnerReference{owner("Job", "batch/v1", "train", true)}
		wl.ResourceVersion = "7"
		wl.Annotations = map[string]string{"ferry.dev/reservation": "forged", "note": "stays"}
		wl.Spec.PreemptionGates = []kueue.PreemptionGate{{Name: "gate"}}
		wl.Status.NominatedClusterNames = []string{"w1"}
	})
	before := wl.DeepCopy()
	got := kinds.ProjectWorkload(wl, kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}, marks)
	if len(got.OwnerReferences)+len(got.Finalizers)+len(got.UID)+len(got.ResourceVersion) > 0 {
		t.Errorf("the copy keeps what is the manager's: %+v", got.ObjectMeta)
	}
	if len(got.Spec.PreemptionGates)+len(got.Status.NominatedClusterNames) > 0 {
		t.Error("the copy keeps preemption gates or status")
	}
	if _, linked := got.Labels[kinds.JobUIDLabel]; linked || got.Labels["team"] != "a" || got.Annotations["note"] != "stays" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	if got.Annotations[kinds.ReservationAnnotation] != marks.Reservation || got.Annotations[kueue.MultiKueueOriginUIDAnnotation] != "wl-uid" {
		t.Errorf("marks: %v", got.Annotations)
	}
	if got.Annotations[kinds.SpecHashAnnotation] != kinds.SpecHash(wl) || kinds.SpecHash(got) != kinds.SpecHash(wl) {
		t.Error("the spec hash is not the original's")
	}
	if kinds.SpecHash(before) != kinds.SpecHash(wl) || len(wl.Spec.PreemptionGates) != 1 {
		t.Error("ProjectWorkload changed its input")
	}
}

func TestSpecHash(t *testing.T) {
	base := kinds.SpecHash(workload("w"))
	for name, c := range map[string]struct {
		change func(*kueue.Workload)
		same   bool
	}{
		"priority":        {func(wl *kueue.Workload) { p := int32(9); wl.Spec.Priority = &p }, true},
		"no priority":     {func(wl *kueue.Workload) { wl.Spec.Priority = nil }, true},
		"priority class":  {func(wl *kueue.Workload) { wl.Spec.PriorityClassRef = &kueue.PriorityClassRef{Name: "high"} }, true},
		"preemption gate": {func(wl *kueue.Workload) { wl.Spec.PreemptionGates = []kueue.PreemptionGate{{Name: "g"}} }, true},
		"labels":          {func(wl *kueue.Workload) { wl.Labels = nil }, true},
		"status":          {func(wl *kueue.Workload) { wl.Status.NominatedClusterNames = []string{"w"} }, true},
		"pod count":       {func(wl *kueue.Workload) { wl.Spec.PodSets[0].Count = 3 }, false},
		"queue":           {func(wl *kueue.Workload) { wl.Spec.QueueName = "other" }, false},
		"active":          {func(wl *kueue.Workload) { no := false; wl.Spec.Active = &no }, true},
	} {
		if same := kinds.SpecHash(workload("w", c.change)) == base; same != c.same {
			t.Errorf("%s: hash equal is %v, want %v", name, same, c.same)
		}
	}
}

// TestSameSpec: the hash depends on Go types, so that one that another build of Ferry wrote says nothing by itself.
func TestSameSpec(t *testing.T) {
	wl := workload("w")
	changed := workload("w", func(wl *kueue.Workload) { wl.Spec.PodSets[0].Count++ })
	for mark, hash := range map[string]string{
		"this build's": kinds.SpecHash(wl), "another build's": "0123456789abcdef", "a later form": "v7:0123", "none": "",
	} {
		c := kinds.ProjectWorkload(wl, kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}, marks)
		c.Annotations[kinds.SpecHashAnnotation] = hash
		// What API servers and Kueue's webhooks differ in without meaning anything by it.
		c.Spec.PodSets[0].Template.Spec.Volumes = []corev1.Volume{}
		if !kinds.SameSpec(c, wl) {
			t.Errorf("mark: %s; the copy of an unchanged spec counts as changed", mark)
		}
		if kinds.SameSpec(c, changed) {
			t.Errorf("mark: %s; the copy of a changed spec counts as the same", mark)
		}
	}
}

// TestGoldenSpecHash: when this changes, the marks of earlier builds do not hold any more, and the specs of all their
// copies are compared in full. That evicts nobody, see SameSpec. (The template's hash is of plain JSON; the golden files show it.)
func TestGoldenSpecHash(t *testing.T) {
	wl := workload("w", func(wl *kueue.Workload) {
		cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
		wl.Spec.PodSets[0].Template.Spec = corev1.PodSpec{
			Containers:    []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{Requests: cpu}}},
			RestartPolicy: corev1.RestartPolicyNever,
		}
	})
	if got := kinds.SpecHash(wl); got != "f48ed24552f69bdc" {
		t.Errorf("the hash is %s now", got)
	}
}

// TestCopyFollowsNoClassOfItsWorker: Kueue there would give it what the class is worth on the worker.
func TestCopyFollowsNoClassOfItsWorker(t *testing.T) {
	for name, test := range map[string]struct{ is, want *kueue.PriorityClassRef }{
		"a Workload's class": {kueue.NewWorkloadPriorityClassRef("high"), kueue.NewPodPriorityClassRef("high")},
		"a pod's class":      {kueue.NewPodPriorityClassRef("high"), kueue.NewPodPriorityClassRef("high")},
		"none":               {nil, nil},
	} {
		wl := workload("w", func(wl *kueue.Workload) { wl.Spec.PriorityClassRef = test.is })
		got := kinds.ProjectWorkload(wl, kinds.Ref{Kind: "Job.batch", Namespace: "team-a", Name: "train"}, marks)
		if !reflect.DeepEqual(got.Spec.PriorityClassRef, test.want) || *got.Spec.Priority != *wl.Spec.Priority {
			t.Errorf("%s: the copy has %v and %d, want %v and %d", name, got.Spec.PriorityClassRef, *got.Spec.Priority, test.want, *wl.Spec.Priority)
		}
	}
}

func TestNewTable(t *testing.T) {
	if rows := kinds.NewTable(nil).Rows(); len(rows) != 0 {
		t.Errorf("nothing enabled gives %d rows", len(rows))
	}
	table := kinds.NewTable(append(kinds.Frameworks(), "example.com/unknown"))
	if len(table.Rows()) != len(kinds.All()) {
		t.Errorf("%d rows, want %d", len(table.Rows()), len(kinds.All()))
	}
	watched := map[schema.GroupVersionKind]int{}
	for _, gvk := range table.GVKs() {
		watched[gvk]++
	}
	for _, row := range table.Rows() {
		if watched[row.GVK] != 1 {
			t.Errorf("%s is watched %d times, want once", row.GVK, watched[row.GVK])
		}
	}
	for _, row := range table.Rows() {
		if table.ByName(row.Name()) != row {
			t.Errorf("ByName does not find %s", row.Name())
		}
	}
	if table.ByName("Job.example.com") != nil {
		t.Error("ByName finds another group's kind")
	}
}

func TestManaged(t *testing.T) {
	kind := kinds.NewTable([]string{"batch/job"}).Rows()[0]
	for by, want := range map[string]bool{"kueue.x-k8s.io/multikueue": true, "kubernetes.io/job-controller": false, "": false} {
		job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		if by != "" {
			job.Object["spec"] = map[string]any{"managedBy": by}
		}
		managed, why := kind.Managed(job)
		if managed != want || (why == "") != want {
			t.Errorf("managedBy %q: %v, %q", by, managed, why)
		}
		if !want && (!strings.Contains(why, "spec.managedBy") || !strings.Contains(why, `not "`+by+`"`)) {
			t.Errorf("managedBy %q: the message does not say so: %s", by, why)
		}
	}
}

// TestAddressesStayOnTheWorker: whatever status a worker reports of a pod, the manager's shows no address of it, and no
// claim or node name of its own cluster is replaced; unless the pod networks are connected, for every kind with pods.
func TestAddressesStayOnTheWorker(t *testing.T) {
	for _, k := range podRows(kinds.NewTable(kinds.Frameworks())) {
		for _, phase := range []string{"Pending", "Running", "Succeeded", "Failed", "Unknown", ""} {
			manager, worker := forgedPods(phase)
			got := k.Reflect(manager, worker, now)
			for _, field := range []string{"podIP", "podIPs", "hostIP", "hostIPs"} {
				if _, shown := got[field]; shown {
					t.Errorf("%s, %s: %s of the worker's pod is shown on the manager", k.Name(), phase, field)
				}
			}
			for _, field := range []string{"nominatedNodeName", "resourceClaimStatuses", "extendedResourceClaimStatus", "qosClass"} {
				if _, shown := got[field]; shown {
					t.Errorf("%s, %s: %s comes from the worker", k.Name(), phase, field)
				}
			}
		}
	}
	for _, k := range podRows(kinds.NewTable(kinds.Frameworks()).WithAddresses()) {
		manager, worker := forgedPods("Running")
		got := k.Reflect(manager, worker, now)
		if got["podIP"] != "10.0.0.7" || got["hostIP"] != "10.1.0.1" || got["nominatedNodeName"] != nil {
			t.Errorf("%s with connected pod networks: %v", k.Name(), got)
		}
	}
}

// podRows are the rows by which pods are shown, be it for a kind with pods.
func podRows(table *kinds.Table) []*kinds.Kind {
	var rows []*kinds.Kind
	for _, k := range table.Rows() {
		switch {
		case k.Pods:
			rows = append(rows, k.PodKind())
		case k.GVK == k.PodKind().GVK:
			rows = append(rows, k)
		}
	}
	return rows
}

// forgedPods are a gated pod on the manager and its namesake, whose worker reports all that could do harm.
func forgedPods(phase string) (manager, worker *unstructured.Unstructured) {
	manager, worker = &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	worker.Object["status"] = map[string]any{
		"phase": phase, "podIP": "10.0.0.7", "podIPs": []any{map[string]any{"ip": "10.0.0.7"}},
		"hostIP": "10.1.0.1", "hostIPs": []any{map[string]any{"ip": "10.1.0.1"}},
		"nominatedNodeName": "control-plane-1", "qosClass": "Guaranteed",
		"resourceClaimStatuses":       []any{map[string]any{"name": "gpu", "resourceClaimName": "somebody-else-s"}},
		"extendedResourceClaimStatus": map[string]any{"resourceClaimName": "somebody-else-s"},
		"conditions":                  []any{map[string]any{"type": "PodScheduled", "status": "True"}, map[string]any{"type": "Ready", "status": "True"}},
	}
	return manager, worker
}
