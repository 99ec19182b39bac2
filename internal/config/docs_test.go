package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/configuration.md")

const document = "../../docs/configuration.md"

// Defaults that the value alone would not tell.
var derived = map[string]string{
	"integrations.frameworks":                                        "all of kinds.md",
	"leaderElection.resourceNamespace":                               "the value of `namespace`",
	"multiKueue.externalFrameworks[].managedBy":                      "`spec.managedBy`",
	"multiKueue.externalFrameworks[].statusSubresource":              "`true`",
	"multiKueue.objectRetentionPolicies.remoteObjects.afterFinished": "`0s`",
	"multiKueue.origin":                                              "derived from the UID of the manager's namespace `kube-system`",
}

func TestDocumentHasEveryFieldAndFlag(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile(document)
	g.Expect(err).NotTo(HaveOccurred())
	want := string(data)
	for name, table := range map[string]string{"fields": fieldTable(t), "flags": flagTable(), "defaults": defaultsBlock(t)} {
		want = replaceBlock(t, want, name, table)
	}
	if *update {
		g.Expect(os.WriteFile(document, []byte(want), 0o644)).To(Succeed())
		return
	}
	g.Expect(string(data)).To(Equal(want), "docs/configuration.md is out of date: run `go test ./internal/config -update`")
}

func TestDerivedDefaultsAreFields(t *testing.T) {
	g := NewWithT(t)
	table := fieldTable(t)
	for path, text := range derived {
		g.Expect(table).To(MatchRegexp("(?m)^\\| `%s` \\|[^|]+\\| %s \\|", regexp.QuoteMeta(path), text))
	}
}

// replaceBlock puts text between the marks `<!-- name: generated -->` and `<!-- /name -->`.
func replaceBlock(t *testing.T, in, name, text string) string {
	t.Helper()
	start, end := "<!-- "+name+": generated -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(in, start)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks %q and %q", document, start, end)
	}
	return before + start + text + end + after
}

func fieldTable(t *testing.T) string {
	t.Helper()
	c := &Configuration{MultiKueue: MultiKueue{DispatcherName: DispatcherIncremental}} // so that its section has defaults
	c.SetDefaults()
	c.MultiKueue.DispatcherName = DispatcherAllAtOnce
	var b strings.Builder
	b.WriteString("| Field | Type | Default | Meaning |\n| --- | --- | --- | --- |\n")
	writeRows(&b, "", reflect.ValueOf(*c), fieldComments(t))
	return b.String()
}

func writeRows(b *strings.Builder, prefix string, v reflect.Value, comments map[string]string) {
	for f := range v.Type().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		path, value := prefix+name, v.FieldByIndex(f.Index)
		kind, section := typeName(f.Type)
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", path, kind, defaultText(path, value, section), comments[v.Type().Name()+"."+f.Name])
		switch {
		case f.Type.Kind() == reflect.Slice && section:
			writeRows(b, path+"[].", reflect.Zero(f.Type.Elem()), comments)
		case section && kind != "any":
			if value.Kind() == reflect.Pointer && value.IsNil() {
				value = reflect.New(f.Type.Elem())
			}
			writeRows(b, path+".", reflect.Indirect(value), comments)
		}
	}
}

// typeName also tells whether the type has fields of its own.
func typeName(t reflect.Type) (name string, section bool) {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t == reflect.TypeFor[metav1.Duration]():
		return "duration", false
	case t.Kind() == reflect.Struct:
		return "section", true
	case t.Kind() == reflect.Map:
		return "any", true
	case t.Kind() == reflect.Slice:
		element, section := typeName(t.Elem())
		return "list of " + element + "s", section
	case t.Kind() == reflect.Float32:
		return "number", false
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int32:
		return "integer", false
	default:
		return t.Kind().String(), false
	}
}

func defaultText(path string, v reflect.Value, section bool) string {
	if text, ok := derived[path]; ok {
		return text
	}
	v = reflect.Indirect(v)
	switch {
	case section && v.Kind() != reflect.Slice:
		return ""
	case !v.IsValid() || (v.IsZero() && v.Kind() != reflect.Bool):
		return "none"
	case v.Type() == reflect.TypeFor[metav1.Duration]():
		return "`" + v.Field(0).Interface().(fmt.Stringer).String() + "`"
	default:
		return fmt.Sprintf("`%v`", v.Interface())
	}
}

// fieldComments maps Type.Field to the comment above the field in types.go.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, parser.ParseComments)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				text := strings.Join(strings.Fields(f.Doc.Text()), " ")
				NewWithT(t).Expect(text).NotTo(BeEmpty(), "%s.%s has no comment", spec.Name, name)
				comments[spec.Name.Name+"."+name.Name] = text
			}
		}
		return false
	})
	return comments
}

func flagTable() string {
	set := pflag.NewFlagSet("ferry", pflag.ContinueOnError)
	(&Flags{}).AddTo(set)
	var b strings.Builder
	b.WriteString("| Flag | Meaning |\n| --- | --- |\n")
	set.VisitAll(func(f *pflag.Flag) {
		argument, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		if f.DefValue != "" && !strings.HasPrefix(usage, "overrides") {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace(name+" "+argument), "|", "\\|"), strings.ReplaceAll(usage, "|", "\\|"))
	})
	return b.String()
}

func defaultsBlock(t *testing.T) string {
	t.Helper()
	c := &Configuration{}
	c.SetDefaults()
	c.Integrations.Frameworks = []string{} // all: too many to repeat here
	data, err := yaml.Marshal(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return "```yaml\n" + string(data) + "```\n"
}
