package demo

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"ferry.dev/ferry/playground/operator"
)

const root = "../.."

func namesOf(kinds []kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ",")
}

func TestChoose(t *testing.T) {
	g := NewWithT(t)
	for asked, want := range map[string]string{
		"":                              "",
		"statefulset,jobset":            "jobset,statefulset",
		"JobSet, jobset":                "jobset",
		"rayjob,all":                    strings.Join(Kinds(), ","),
		"podgroup,leaderworkerset,job ": "job,podgroup,leaderworkerset",
	} {
		var names []string
		if asked != "" {
			names = strings.Split(asked, ",")
		}
		chosen, err := choose(names)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(chosen)).To(Equal(want), asked)
	}
	for _, unknown := range []string{"sparkjob", ""} {
		_, err := choose([]string{"jobset", unknown})
		g.Expect(err).To(MatchError(And(
			ContainSubstring(`"`+unknown+`"`), ContainSubstring("jobset"), ContainSubstring("leaderworkerset"), ContainSubstring(`"all"`))))
	}
}

func TestOnlyWhatTheKindsNeedIsStarted(t *testing.T) {
	g := NewWithT(t)
	chosen, err := choose([]string{"jobset", "rayjob", "rayservice", "statefulset"})
	g.Expect(err).NotTo(HaveOccurred())
	operators, frameworks := needs(chosen)
	g.Expect(operators).To(Equal([]string{"jobset", "kuberay"}))
	g.Expect(frameworks).To(Equal([]string{"pod", "statefulset"}))
	g.Expect(kindTerms(chosen).frameworks).To(ContainElement("batch/job"), "a plain demo may follow on the same clusters")
}

// TestKindRows holds the table to the operators' and to the files.
func TestKindRows(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(root, "examples", "kinds", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		g.Expect(Kinds()).To(ContainElement(strings.TrimSuffix(filepath.Base(file), ".yaml")), "a file that no demo shows")
	}
	for _, framework := range operator.Frameworks([]string{operator.All}, nil) {
		g.Expect(Kinds()).To(ContainElement(path.Base(framework)))
	}
	for _, k := range kindRows {
		g.Expect(append([]string{k.operator}, k.frameworks...)).NotTo(Equal([]string{""}), "%s needs something on in Kueue", k.name)
		if k.operator != "" {
			row, err := operator.Find(k.operator)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(row.Frameworks).To(ContainElement(HaveSuffix("/"+k.name)), "its operator's kinds")
		}
	}
}

// TestEveryKindHasItsExample reads the files as the demo does.
func TestEveryKindHasItsExample(t *testing.T) {
	g := NewWithT(t)
	titles := map[string]bool{}
	for _, k := range kindRows {
		e, err := k.example(root)
		g.Expect(err).NotTo(HaveOccurred(), k.name)
		for _, o := range e.objects {
			g.Expect(o.GetNamespace()).To(Equal(namespace))
			g.Expect(o.GetLabels()).To(HaveKeyWithValue(demoLabel, k.name), "so that the next demo may remove it")
			if k.name != "podgroup" && k.name != "job" {
				g.Expect(strings.ToLower(o.GetKind())).To(Equal(k.name))
			}
		}
		titles[e.title()] = true
	}
	g.Expect(titles).To(And(HaveLen(len(kindRows)), HaveKey("podgroup/podgroup"), HaveKey("job/hello")))
	_, err := kind{name: "none"}.example(root)
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
