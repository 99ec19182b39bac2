package kinds_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ferry.dev/ferry/internal/kinds"
)

const kindsFile = "../../docs/kinds.md"

// TestDocsKinds: docs/kinds.md is what the table says.
func TestDocsKinds(t *testing.T) {
	want := kindsDoc()
	if *update {
		if err := os.WriteFile(kindsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(kindsFile)
	if err != nil {
		t.Fatalf("%v; make golden writes it", err)
	}
	if string(got) != want {
		t.Error("docs/kinds.md is stale; make golden rewrites it")
	}
}

func TestEveryKindSaysWhatItNeeds(t *testing.T) {
	for _, k := range kinds.All() {
		if k.Plural == "" || k.Doc.Needs == "" || (len(k.Drop) > 0) && k.Doc.Drop == "" {
			t.Errorf("%s: Plural %q, Doc %+v", k.Name(), k.Plural, k.Doc)
		}
	}
}

const kindsIntro = `# The kinds

What Ferry dispatches, and what is special about each kind. All are on unless the configuration names some in
[integrations.frameworks](configuration.md); a cluster need not serve them all. A worker that does not serve a kind is
left out for that kind only, and used as soon as it does. A Deployment is dispatched pod by pod, see [Pod](#pod); a CronJob
by the Jobs that it makes, whose template names the queue.

**What has to be there.** Kueue on the manager and on the workers needs the kind in its own ` + "`integrations.frameworks`" + `: as
shipped, Kueue 0.19 has PyTorchJob, TFJob, XGBoostJob, PaddleJob and JAXJob off. The manager needs the kind's CRD; its
operator only where the list below says so, and one that runs there has to know the ` + "`managedBy`" + ` named below. A worker
needs what the table says, and the job's namespace with a LocalQueue of the same name. Ferry copies the job and nothing
that it refers to: ServiceAccounts, Secrets, ConfigMaps, volume claims, Services and priority classes have to be on the
workers already.

**On the manager** Ferry's webhook marks each new job whose queue leads to workers, so that nobody runs it there: it sets
` + "`managedBy`" + ` to ` + "`kueue.x-k8s.io/multikueue`" + `, or gives pods a scheduling gate. Users need not. A ` + "`managedBy`" + ` that names
somebody else stays; such a job is not dispatched: it waits, and its admission check says what to do.

**The copy** has the name, namespace, labels, annotations and spec of the original, but never its owners, finalizers,
status or ` + "`managedBy`" + `. It is suspended, or its pods are gated: Kueue on the worker starts it. Where nothing else is said,
the status comes back whole, with fields that Ferry does not know; each ` + "`observedGeneration`" + ` is translated to the
manager's. A finished job's status is never written again, but that it comes to rest: pods may outlive their job's end, for up to
30 s. Once a job has stopped everywhere its status says so, and
forgets the run that is over.

**Edits and deletion.** Jobs are edited, scaled and deleted on the manager. Edits of the fields named below, and of the
priority, reach a copy while it runs; others do not. A copy has the manager's priority: classes of that name on the worker
do not count. One that asks for other quota makes Kueue on the manager stop the job
and queue it anew, unless Kueue refuses it. A job that is deleted there goes from its worker too.

**Jobs that request nothing.** Kueue ties admission checks to flavors, and a job without requests gets no flavor: Kueue admits
it without the check that would send it to a worker, and on the manager nothing runs it. A warning on the job says so. Let it
request CPU or memory, set defaults by a LimitRange, or let the ClusterQueue cover the resource ` + "`pods`" + `, which every job requests.

**Volume claims.** Those of a StatefulSet's or LeaderWorkerSet's ` + "`volumeClaimTemplates`" + `, and the ephemeral volumes of any pod, are
made on the worker by its own controllers, and a second time on the manager by the controllers there, where no pod uses
them; an event says so. Where their StorageClass on the manager has ` + "`volumeBindingMode: WaitForFirstConsumer`" + `, no volume is made for
them, as the pods there never get a node: the claims stay Pending, and go as the set's retention policy says.

A time to live that a job sets is honoured by nobody on the manager, but for batch Jobs: finished jobs stay until deleted.

This file is generated from the table in ` + "`internal/kinds`" + ` by ` + "`make golden`" + `; do not edit it.

| Kind | API | In ` + "`integrations.frameworks`" + ` | The worker needs |
| --- | --- | --- | --- |
`

func kindsDoc() string {
	var b strings.Builder
	b.WriteString(kindsIntro)
	for _, k := range kinds.All() {
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | `%s` | %s |\n", title(k), strings.ToLower(title(k)), k.GVK.GroupVersion(), strings.Join(append([]string{k.Framework}, k.Also...), "`, `"), firstOf(k.Doc.Needs))
	}
	for _, k := range kinds.All() {
		fmt.Fprintf(&b, "\n## %s\n\n", title(k))
		for _, line := range []struct{ what, value string }{
			{"Left to Ferry on the manager by", managedBy(k)},
			{"Stays behind", sentence(paths(k.Drop), k.Doc.Drop)},
			{"Status", sentence("", k.Doc.Status)},
			{"Edits that reach a running copy", sentence(paths(k.Flow), k.Doc.Flow)},
			{"The worker needs", k.Doc.Needs},
		} {
			if line.value != "" {
				fmt.Fprintf(&b, "- %s: %s\n", line.what, strings.TrimSuffix(line.value, ".")+".")
			}
		}
	}
	return b.String()
}

// title is the kind's name without its group.
func title(k kinds.Kind) string {
	name, _, _ := strings.Cut(k.Name(), ".")
	return name
}

func firstOf(needs string) string {
	first, _, _ := strings.Cut(needs, ". ")
	first, _, _ = strings.Cut(first, ";")
	return strings.TrimSuffix(first, ".")
}

func managedBy(k kinds.Kind) string {
	const gate = "the scheduling gate `" + kinds.Gate + "`"
	switch {
	case k.Pods:
		return gate + " of its pods; its own controller runs there"
	case k.Group:
		return gate + ", which its pods keep there"
	case len(k.ManagedBy) == 0:
		return gate + ", which it keeps there"
	}
	return "`" + dotted(k.ManagedBy) + "`; `" + k.OwnManager + "` there counts as empty"
}

func sentence(list, why string) string {
	if list == "" || why == "" {
		return list + why
	}
	return list + ". " + why
}

func paths(list []kinds.Path) string {
	var names []string
	for _, p := range list {
		names = append(names, "`"+dotted(p)+"`")
	}
	return strings.Join(names, ", ")
}

// dotted writes a path as users do; a name with dots goes in brackets.
func dotted(p kinds.Path) string {
	out := ""
	for _, field := range p {
		if strings.Contains(field, ".") {
			out += "[" + field + "]"
			continue
		}
		out += "." + field
	}
	return strings.TrimPrefix(out, ".")
}
