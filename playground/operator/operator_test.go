package operator

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func names(rows []Row) []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return all
}

func TestResolve(t *testing.T) {
	g := NewWithT(t)
	for asked, want := range map[string][]string{
		"":                      nil,
		"kuberay":               {"kuberay"},
		"trainer":               {"jobset", "trainer"},
		"trainer,jobset,jobset": {"jobset", "trainer"},
		"jobset,all":            Names(),
	} {
		rows, err := Resolve(strings.FieldsFunc(asked, func(r rune) bool { return r == ',' })...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(rows)).To(Equal(want), asked)
	}
	_, err := Resolve("jobset", "spark")
	g.Expect(err).To(MatchError(And(ContainSubstring(`"spark"`), ContainSubstring("mpi-operator"), ContainSubstring(`"all"`))))
}

func TestFrameworks(t *testing.T) {
	g := NewWithT(t)
	rows, err := Resolve("trainer")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Frameworks([]string{"batch/job"}, nil)).To(Equal([]string{"batch/job"}))
	g.Expect(Frameworks([]string{"batch/job", "jobset.x-k8s.io/jobset"}, rows)).To(
		Equal([]string{"batch/job", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"}))
	g.Expect(Frameworks([]string{All}, rows)).To(And(HaveLen(17), ContainElements("pod", "deployment", "ray.io/rayservice")))
}

// TestEveryRowFillsIn also holds rows to what the playground takes for granted.
func TestEveryRowFillsIn(t *testing.T) {
	at := Place{Config: "/run/config.yaml", Certs: "/run/certs", HealthPort: 12001, WebhookPort: 12002, RayProxy: "http://127.0.0.1:12003"}
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			g := NewWithT(t)
			args, env, config, err := row.Fill(at)
			g.Expect(err).NotTo(HaveOccurred())
			var parsed map[string]any
			g.Expect(yaml.UnmarshalStrict([]byte(config), &parsed)).To(Succeed())

			text := strings.Join(append(append(args, env...), config), "\n")
			g.Expect(text).NotTo(ContainSubstring("{{"))
			g.Expect(text).To(ContainSubstring("127.0.0.1:12001"), "where it answers that it is ready")
			if row.Webhooks != "" {
				g.Expect(text).To(ContainSubstring("12002"), "where its webhooks are")
			}
			if row.ConfigMap != "" {
				g.Expect(row.Namespace).NotTo(BeEmpty())
			}
			if row.Rays {
				g.Expect(env).To(ContainElement("HTTP_PROXY=" + at.RayProxy))
			}
			g.Expect(row.Frameworks).NotTo(BeEmpty())
			g.Expect(row.CRDs).NotTo(BeEmpty())
			g.Expect(row.Health).To(HavePrefix("/"))
		})
	}
}

func TestABadTemplateIsAnError(t *testing.T) {
	g := NewWithT(t)
	for _, row := range []Row{{Name: "x", Args: []string{"{{"}}, {Name: "x", Env: []string{"{{.NoSuch}}"}}, {Name: "x", Config: "{{.NoSuch}}"}} {
		_, _, _, err := row.Fill(Place{})
		g.Expect(err).To(MatchError(ContainSubstring("of x")))
	}
}

func TestNarrow(t *testing.T) {
	g := NewWithT(t)
	row := Row{Selectors: map[string]string{"mpod.kb.io": "jobset.sigs.k8s.io/jobset-name"}}
	pods, sets := map[string]any{"name": "mpod.kb.io"}, map[string]any{"name": "mjobset.kb.io"}
	row.Narrow(pods)
	row.Narrow(sets)
	g.Expect(pods["objectSelector"]).To(HaveKeyWithValue("matchExpressions",
		ConsistOf(And(HaveKeyWithValue("key", "jobset.sigs.k8s.io/jobset-name"), HaveKeyWithValue("operator", "Exists")))))
	g.Expect(sets).NotTo(HaveKey("objectSelector"))
}
