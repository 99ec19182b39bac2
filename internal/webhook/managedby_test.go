package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"ferry.dev/ferry/internal/kinds"
	"ferry.dev/ferry/internal/webhook"
)

const ours = kueue.MultiKueueControllerName

// The queues of namespace team lead to: "dispatched" our check; "second" a
// foreign check and then ours; "foreign" a foreign check only; "half" a check
// that does not exist; "plain" no check; "dangling" no ClusterQueue.
func queues() []client.Object {
	objects := []client.Object{statefulSet("dispatched"), statefulSet("plain"), check("ours", ours), check("theirs", "example.com/budget"), local("dangling", "nowhere")}
	for name, checks := range map[string][]string{
		"dispatched": {"ours"}, "second": {"theirs", "ours"}, "foreign": {"theirs"}, "half": {"absent"}, "plain": nil,
	} {
		objects = append(objects, local(name, "cq-"+name), cluster("cq-"+name, checks...))
	}
	return objects
}

// statefulSet is one in the queue of its own name.
func statefulSet(queue string) client.Object {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: queue, Labels: map[string]string{"kueue.x-k8s.io/queue-name": queue},
	}}
}

func check(name, controller string) client.Object {
	return &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.AdmissionCheckSpec{ControllerName: controller}}
}

func local(name, clusterQueue string) client.Object {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(clusterQueue)},
	}
}

func cluster(name string, checks ...string) client.Object {
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if len(checks) > 0 {
		q.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{}
	}
	for _, c := range checks {
		q.Spec.AdmissionChecksStrategy.AdmissionChecks = append(q.Spec.AdmissionChecksStrategy.AdmissionChecks,
			kueue.AdmissionCheckStrategyRule{Name: kueue.AdmissionCheckReference(c)})
	}
	return q
}

func newReader(t testing.TB, f interceptor.Funcs) client.Client {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(kueue.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(appsv1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(queues()...).WithInterceptorFuncs(f).Build()
}

// job is the row of batch Jobs; deep is like the rows whose field lies deeper.
func job() *kinds.Kind {
	return kinds.NewTable(kinds.Frameworks()).ByName("Job.batch")
}

func deep() *kinds.Kind {
	k := *job()
	k.GVK.Group, k.GVK.Kind = "example.com", "Deep"
	k.ManagedBy = kinds.Path{"spec", "run/~Policy", "managedBy"}
	k.OwnManager = ""
	return &k
}

func create(raw string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Namespace: "team", Object: runtime.RawExtension{Raw: []byte(raw)},
	}}
}

// object is a job in a queue with these further fields.
func object(queue, fields string) string {
	return `{"apiVersion":"batch/v1","kind":"Job","metadata":{"generateName":"j-","labels":{"kueue.x-k8s.io/queue-name":"` + queue + `"}}` + fields + `}`
}

// apply applies the patch of a response as the API server does.
func apply(g Gomega, raw string, response admission.Response) string {
	if len(response.Patches) == 0 {
		return raw
	}
	encoded, err := json.Marshal(response.Patches)
	g.Expect(err).NotTo(HaveOccurred())
	patch, err := jsonpatch.DecodePatch(encoded)
	g.Expect(err).NotTo(HaveOccurred())
	patched, err := patch.Apply([]byte(raw))
	g.Expect(err).NotTo(HaveOccurred())
	return string(patched)
}

func TestManagedBy(t *testing.T) {
	const spec = `,"spec":{"managedBy":"kueue.x-k8s.io/multikueue"}`
	for name, test := range map[string]struct {
		kind     *kinds.Kind
		in, want string // want empty: unchanged
	}{
		"our check":                {job(), object("dispatched", `,"spec":{"parallelism":3}`), object("dispatched", `,"spec":{"parallelism":3,"managedBy":"kueue.x-k8s.io/multikueue"}`)},
		"our check is the second":  {job(), object("second", `,"spec":{}`), object("second", spec)},
		"no spec":                  {job(), object("dispatched", ``), object("dispatched", spec)},
		"null spec":                {job(), object("dispatched", `,"spec":null`), object("dispatched", spec)},
		"null field":               {job(), object("dispatched", `,"spec":{"managedBy":null}`), object("dispatched", spec)},
		"the Job controller":       {job(), object("dispatched", `,"spec":{"managedBy":"kubernetes.io/job-controller"}`), object("dispatched", spec)},
		"already ours":             {job(), object("dispatched", spec), ""},
		"another manager":          {job(), object("dispatched", `,"spec":{"managedBy":"example.com/mine"}`), ""},
		"empty is the user's word": {job(), object("dispatched", `,"spec":{"managedBy":""}`), ""},
		"field of another type":    {job(), object("dispatched", `,"spec":{"managedBy":{"a":1}}`), ""},
		"spec of another type":     {job(), object("dispatched", `,"spec":[1]`), ""},
		"foreign check":            {job(), object("foreign", `,"spec":{}`), ""},
		"check does not exist":     {job(), object("half", `,"spec":{}`), ""},
		"no checks":                {job(), object("plain", `,"spec":{}`), ""},
		"no ClusterQueue":          {job(), object("dangling", `,"spec":{}`), ""},
		"no LocalQueue":            {job(), object("absent", `,"spec":{}`), ""},
		"empty queue name":         {job(), object("", `,"spec":{}`), ""},
		"no queue label":           {job(), `{"apiVersion":"batch/v1","kind":"Job","metadata":{"labels":{"a":"b"}},"spec":{}}`, ""},
		"labels of another type":   {job(), `{"apiVersion":"batch/v1","kind":"Job","metadata":{"labels":[]},"spec":{}}`, ""},
		"a copy goes by its queue": {job(), `{"apiVersion":"batch/v1","kind":"Job","metadata":{"labels":{"kueue.x-k8s.io/multikueue-origin":"m","kueue.x-k8s.io/queue-name":"plain"}},"spec":{}}`, ""},
		"deep, no parents":         {deep(), object("dispatched", ``), object("dispatched", `,"spec":{"run/~Policy":{"managedBy":"kueue.x-k8s.io/multikueue"}}`)},
		"deep, one parent":         {deep(), object("dispatched", `,"spec":{"a":1}`), object("dispatched", `,"spec":{"a":1,"run/~Policy":{"managedBy":"kueue.x-k8s.io/multikueue"}}`)},
		"deep, with parents":       {deep(), object("dispatched", `,"spec":{"run/~Policy":{"b":2}}`), object("dispatched", `,"spec":{"run/~Policy":{"b":2,"managedBy":"kueue.x-k8s.io/multikueue"}}`)},
		"a custom kind has no own": {deep(), object("dispatched", `,"spec":{"run/~Policy":{"managedBy":"kubernetes.io/job-controller"}}`), ""},
		"a number beyond float64":  {job(), object("dispatched", `,"spec":{"n":9007199254740993}`), object("dispatched", `,"spec":{"n":9007199254740993,"managedBy":"kueue.x-k8s.io/multikueue"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			handler := &webhook.ManagedBy{Kind: test.kind, Reader: newReader(t, interceptor.Funcs{})}
			response := handler.Handle(t.Context(), create(test.in))
			g.Expect(response.Allowed).To(BeTrue(), "%v", response.Result)
			if test.want == "" {
				g.Expect(response.Patches).To(BeEmpty())
				return
			}
			g.Expect(response.Patches).To(HaveLen(1))
			g.Expect(response.Complete(create(test.in))).To(Succeed())
			patched := apply(g, test.in, response)
			g.Expect(patched).To(MatchJSON(test.want))
			g.Expect(strings.Contains(patched, "9007199254740993")).To(Equal(strings.Contains(test.in, "9007199254740993")))
		})
	}
}

// TestWhatKueueLeavesAlone: a job that names our queue and of which Kueue makes no Workload keeps its own controller.
// What a user did wrong is said, what another job made for itself is not.
func TestWhatKueueLeavesAlone(t *testing.T) {
	table := kinds.NewTable(kinds.Frameworks())
	owner := func(kind, name, uid string) string {
		return `,"ownerReferences":[{"apiVersion":"` + kind + `","name":"` + name + `","uid":"` + uid + `","controller":true}]`
	}
	raw := func(more string) string {
		return `{"apiVersion":"v1","kind":"Any","metadata":{"name":"j","labels":{"kueue.x-k8s.io/queue-name":"dispatched"}` + more + `},"spec":{}}`
	}
	for _, kind := range table.Rows() {
		if len(kind.ManagedBy) == 0 {
			continue
		}
		for name, c := range map[string]struct {
			raw    string
			leaves bool
		}{
			"nobody owns it":              {raw(""), false},
			"a job in a queue owns it":    {raw(owner(`batch/v1","kind":"Job`, "queued", "uid-queued")), true},
			"its grandparent is in one":   {raw(owner(`batch/v1","kind":"Job`, "child", "uid-child")), true},
			"its owner is in no queue":    {raw(owner(`batch/v1","kind":"Job`, "plain", "uid-plain")), false},
			"its owner was made anew":     {raw(owner(`batch/v1","kind":"Job`, "queued", "uid-before")), false},
			"its owner is gone":           {raw(owner(`batch/v1","kind":"Job`, "gone", "uid-gone")), false},
			"something else owns it":      {raw(owner(`batch/v1","kind":"CronJob`, "cron", "uid-cron")), false},
			"its owner's kind is missing": {raw(owner(`jobset.x-k8s.io/v1alpha2","kind":"JobSet`, "set", "uid-set")), false},
		} {
			g := NewWithT(t)
			response := (&webhook.ManagedBy{Kind: kind, Kinds: table, Reader: newReader(t, interceptor.Funcs{Get: ownersOnly})}).Handle(t.Context(), create(c.raw))
			g.Expect(response.Allowed).To(BeTrue(), "%s, %s: %v", kind.Name(), name, response.Result)
			g.Expect(len(response.Patches) == 0).To(Equal(c.leaves), "%s, %s: %v", kind.Name(), name, response.Patches)
			g.Expect(response.Warnings).To(BeEmpty(), name)
		}
	}
	g := NewWithT(t)
	rayJob := &webhook.ManagedBy{Kind: table.ByName("RayJob.ray.io"), Kinds: table, Reader: newReader(t, interceptor.Funcs{})}
	for queue, warns := range map[string]bool{"dispatched": true, "plain": false} {
		response := rayJob.Handle(t.Context(), create(object(queue, `,"spec":{"clusterSelector":{"ray.io/cluster":"shared"}}`)))
		g.Expect(response).To(And(HaveField("Allowed", true), HaveField("Patches", BeEmpty())))
		g.Expect(len(response.Warnings) > 0).To(Equal(warns), queue)
	}
}

// ownersOnly knows Jobs that own others, besides the queues; JobSets are not served.
func ownersOnly(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	job, is := into.(*unstructured.Unstructured)
	switch {
	case !is:
		return c.Get(ctx, key, into, opts...)
	case job.GetKind() != "Job":
		return &meta.NoKindMatchError{GroupKind: job.GroupVersionKind().GroupKind()}
	case key.Name == "gone":
		return apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, key.Name)
	}
	job.SetName(key.Name)
	job.SetUID(types.UID("uid-" + key.Name))
	switch key.Name {
	case "queued":
		job.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": "plain"})
	case "child":
		yes := true
		job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "queued", UID: "uid-queued", Controller: &yes}})
	}
	return nil
}

func TestOnlyCreationIsHandled(t *testing.T) {
	g := NewWithT(t)
	handler := &webhook.ManagedBy{Kind: job(), Reader: newReader(t, interceptor.Funcs{})}
	for _, operation := range []admissionv1.Operation{admissionv1.Update, admissionv1.Delete, admissionv1.Connect} {
		request := create(object("dispatched", ""))
		request.Operation = operation
		g.Expect(handler.Handle(t.Context(), request)).To(And(HaveField("Allowed", true), HaveField("Patches", BeEmpty())), string(operation))
	}
	request := create(object("dispatched", ""))
	request.SubResource = "status"
	g.Expect(handler.Handle(t.Context(), request)).To(And(HaveField("Allowed", true), HaveField("Patches", BeEmpty())))
}

func TestWhatIsNoJobIsRefused(t *testing.T) {
	handler := &webhook.ManagedBy{Kind: job(), Reader: newReader(t, interceptor.Funcs{})}
	for _, raw := range []string{"", "null", "{", "[]", "7", `"x"`, `{"metadata":{}}`, strings.Repeat(`{"a":`, 20000)} {
		g := NewWithT(t)
		response := handler.Handle(t.Context(), create(raw))
		g.Expect(response.Allowed).To(BeFalse(), raw)
		g.Expect(response.Result.Code).To(BeEquivalentTo(http.StatusBadRequest), raw)
		g.Expect(response.Result.Message).To(ContainSubstring("Job.batch"), raw)
	}
}

func TestAFailingLookupRefuses(t *testing.T) {
	for _, kind := range []string{"LocalQueue", "ClusterQueue", "AdmissionCheck"} {
		g := NewWithT(t)
		reader := newReader(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			gvk, err := c.GroupVersionKindFor(into)
			if err != nil || gvk.Kind == kind {
				return errors.Join(err, errors.New("the cache is away"))
			}
			return c.Get(ctx, key, into, opts...)
		}})
		handler := &webhook.ManagedBy{Kind: job(), Reader: reader}
		response := handler.Handle(t.Context(), create(object("dispatched", "")))
		g.Expect(response.Allowed).To(BeFalse())
		g.Expect(response.Result.Code).To(BeEquivalentTo(http.StatusInternalServerError))
		g.Expect(response.Result.Message).To(And(ContainSubstring(kind), ContainSubstring("the cache is away"), ContainSubstring("try again")))

		// What another manager holds needs no lookup, so it does not suffer.
		theirs := create(object("dispatched", `,"spec":{"managedBy":"example.com/mine"}`))
		g.Expect(handler.Handle(t.Context(), theirs).Allowed).To(BeTrue())
	}
}
