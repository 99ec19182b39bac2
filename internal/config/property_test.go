package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"
)

// Pieces of YAML that reach further into Load than random bytes do.
var pieces = []string{
	header, kueueHeader, "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n", "---\n", "\n", "  ", "- ", ": ", "{", "}", "[", "]", "null",
	"namespace: ", "webhook:\n", "  port: ", "multiKueue:\n", "  gcInterval: ", "  clusterProfile:\n", "  externalFrameworks:\n", "  - name: ",
	"integrations:\n", "  frameworks:\n", "  - batch/job\n", "workers:\n", "  reconnectBackoff:\n", "    max: ", "leaderElection:\n", "  resourceName: x\n",
	"resources:\n", "featureGates:\n", "  MultiKueue: true\n", "controller:\n", "1\n", "-1\n", "1e400\n", ".nan\n", "5m\n", "\"", "'", "&a ", "*a\n", "!!binary x\n", "? ", "\x00", "\xff", "\t",
}

func TestLoadNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.SampledFrom(pieces), rapid.SampledFrom(pieces), rapid.String())
		file := strings.Join(rapid.SliceOfN(part, 0, 30).Draw(t, "parts"), "")
		c, _, err := Load([]byte(file), known)
		if (c == nil) == (err == nil) {
			t.Fatalf("want a configuration or an error, got %v and %v", c, err)
		}
		if c == nil {
			return
		}
		c.SetDefaults()
		if c.Validate(known) == nil {
			requireFixedPoint(t, c)
		}
	})
}

func TestLoadOfADefaultedConfigurationIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfiguration(t)
		c.SetDefaults()
		requireFixedPoint(t, c)
	})
}

func requireFixedPoint(t *rapid.T, c *Configuration) {
	data := mustMarshal(t, c)
	again, notes, err := Load(data, known)
	if err != nil || len(notes) > 0 {
		t.Fatalf("loading what was written: %v %v\n%s", err, notes, data)
	}
	again.SetDefaults()
	if written := mustMarshal(t, again); string(written) != string(data) {
		t.Fatalf("written:\n%s\nread and written again:\n%s", data, written)
	}
}

// TestWhatIsSaidToBeMeantIsAccepted for names of any shape.
func TestWhatIsSaidToBeMeantIsAccepted(t *testing.T) {
	word := rapid.OneOf(rapid.SampledFrom([]string{"PipelineRun", "trainings", "buses", "ies", "s", "v1", "v1beta1", "v0", "Kind", "rayjob", "ray.io", "example.com", "batch", "ß", " "}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		e := ExternalFramework{Name: strings.Join(rapid.SliceOfN(word, 0, 5).Draw(t, "words"), rapid.SampledFrom([]string{".", "/", ""}).Draw(t, "between"))}
		if gvk, valid := e.GVK(); valid {
			if e.Name != gvk.Kind+"."+gvk.Version+"."+gvk.Group {
				t.Fatalf("%q was taken for %v", e.Name, gvk)
			}
			return
		}
		_, meant, found := strings.Cut(misnamed(e.Name, known), "did you mean ")
		if _, valid := (ExternalFramework{Name: strings.TrimSuffix(meant, "?")}).GVK(); found && !valid {
			t.Fatalf("%q is refused, and so would be %s", e.Name, meant)
		}
	})
}

// drawConfiguration sets any of the fields, sensible or not.
func drawConfiguration(t *rapid.T) *Configuration {
	c := &Configuration{}
	drawInto(t, reflect.ValueOf(c).Elem())
	return c
}

func drawInto(t *rapid.T, v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[Configuration]().Field(0).Type:
		return // the header is set by SetDefaults
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(rapid.Int64().Draw(t, "duration"))
	case v.Kind() == reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			drawInto(t, v.Elem())
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			drawInto(t, v.Field(i))
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 3).Draw(t, "length"), 3))
		for i := range v.Len() {
			drawInto(t, v.Index(i))
		}
	default:
		drawLeaf(t, v)
	}
}

// YAML cannot hold control characters.
var visible = rapid.RuneFrom([]rune(" '\"#:-"), unicode.L, unicode.N, unicode.P, unicode.S)

func drawLeaf(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.SampledFrom([]string{DispatcherIncremental, "0", "x", "no", "1e3", "~"}), rapid.StringOf(visible)).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "truth"))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Float32().Draw(t, "float")))
	case reflect.Int32:
		v.SetInt(int64(rapid.Int32().Draw(t, "int32")))
	case reflect.Int:
		v.SetInt(int64(rapid.Int().Draw(t, "int")))
	default:
		t.Fatalf("no way to draw a %s", v.Type())
	}
}
