package demo

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func ownedBy(uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "pod-" + uid, UID: types.UID(uid)}}
}

func owned(by string, wl *kueue.Workload) kueue.Workload {
	wl.Name, wl.OwnerReferences = "of-"+by, ownedBy(by)
	return *wl
}

var admitted = reserved(metav1.ConditionTrue, "ok")

// TestWorkloadsOfAnExample: those of a Deployment's pods are its own, and those of others are not.
func TestWorkloadsOfAnExample(t *testing.T) {
	g := NewWithT(t)
	deployment := object(g, `{kind: Deployment, metadata: {name: d, uid: d}}`)
	known := owners{"p1": ownedBy("rs"), "p2": ownedBy("rs"), "rs": ownedBy("d"), "q": ownedBy("q2"), "q2": ownedBy("q")}
	var all []kueue.Workload
	for _, uid := range []string{"d", "p1", "q", "p2", "gone"} {
		all = append(all, owned(uid, workload(admitted, nil, "")))
	}
	var names []string
	for _, wl := range known.of([]*unstructured.Unstructured{deployment}, all) {
		names = append(names, wl.Name)
	}
	g.Expect(names).To(Equal([]string{"of-d", "of-p1", "of-p2"}))
}

func TestRowOfAnExample(t *testing.T) {
	claimed := func(worker string) kueue.Workload { return *workload(admitted, ptr.To(worker), "admitted") }
	offered := *workload(admitted, nil, "Offered to w1")
	pod := func(phase string) string { return `{kind: Pod, metadata: {name: a}, status: {phase: ` + phase + `}}` }
	group := kind{name: "podgroup"}
	serving := kind{name: "deployment", serves: true}
	for name, c := range map[string]struct {
		kind      kind
		now       []string
		workloads []kueue.Workload
		want      Row
	}{
		"nobody looked at it": {kind: kind{name: "cronjob", patience: "soon"}, now: []string{`{kind: CronJob, metadata: {name: a}}`}, want: Row{State: Submitted, Why: "soon"}},
		"one of its pods waits": {
			kind: serving, now: []string{`{kind: Deployment, metadata: {name: a}, spec: {replicas: 2}}`},
			workloads: []kueue.Workload{claimed("w2"), offered}, want: Row{State: Offered, Worker: "w2", Progress: "0/2 ready", Why: "Offered to w1"},
		},
		"on two workers": {
			kind: serving, now: []string{`{kind: Deployment, metadata: {name: a}, spec: {replicas: 2}, status: {readyReplicas: 2}}`},
			workloads: []kueue.Workload{claimed("w2"), claimed("w1"), claimed("w2")}, want: Row{State: Ready, Worker: "w1,w2", Progress: "2/2 ready"},
		},
		"group waits": {kind: group, now: []string{pod("Pending"), pod("Pending")}, workloads: []kueue.Workload{offered}, want: Row{State: Offered, Progress: "0/2 over", Why: "Offered to w1"}},
		"group is half over": {
			kind: group, now: []string{pod("Failed"), pod("Pending")}, workloads: []kueue.Workload{claimed("w1")},
			want: Row{State: Running, Worker: "w1", Progress: "1/2 over"},
		},
		"group is over": {
			kind: group, now: []string{pod("Succeeded"), pod("Succeeded")}, workloads: []kueue.Workload{claimed("w1")},
			want: Row{State: Succeeded, Worker: "w1", Progress: "2/2 over"},
		},
		"group with a failure": {
			kind: group, now: []string{pod("Failed"), pod("Succeeded")}, workloads: []kueue.Workload{claimed("w1")},
			want: Row{State: Failed, Worker: "w1", Progress: "2/2 over"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := example{kind: c.kind}
			for _, text := range c.now {
				e.objects = append(e.objects, object(g, text))
			}
			c.want.Job = e.title()
			g.Expect(e.row(e.objects, c.workloads)).To(Equal(c.want))
		})
	}
}

func TestARunningJobThatSaysNothingStillRuns(t *testing.T) {
	g := NewWithT(t)
	ran, silent := Row{State: Running, Worker: "w1"}, Row{State: Placing, Worker: "w1", Why: "admitted"}
	g.Expect(steady([]Row{ran}, 0, silent)).To(Equal(ran))
	g.Expect(steady(nil, 0, silent)).To(Equal(silent), "it never ran")
	elsewhere := Row{State: Placing, Worker: "w2"}
	g.Expect(steady([]Row{ran}, 0, elsewhere)).To(Equal(elsewhere), "it was lost, and is placed anew")
	waits := Row{State: Offered}
	g.Expect(steady([]Row{ran}, 0, waits)).To(Equal(waits))
}
