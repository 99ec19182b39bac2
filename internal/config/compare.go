package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// differences are what a decoded document has that its type cannot hold. A JSON decoder would stop at the first
// ill-typed value and, for a duration, not even say where it is.
type differences struct {
	unknown []unknownField
	bad     field.ErrorList
}

type unknownField struct {
	path  *field.Path
	known string // the fields that may stand there
}

// compare walks value, as decoded from JSON into any, along the type t. It is case-sensitive. A null is "not set".
func compare(at *field.Path, value any, t reflect.Type) differences {
	if t.Kind() == reflect.Pointer {
		return compare(at, value, t.Elem())
	}
	if value == nil || t.Kind() == reflect.Interface {
		return differences{}
	}
	if decodesItself(t) {
		return compareLeaf(at, value, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return compareStruct(at, value, t)
	case reflect.Map:
		return compareMap(at, value, t)
	case reflect.Slice:
		return compareList(at, value, t)
	default:
		return compareLeaf(at, value, t)
	}
}

func compareStruct(at *field.Path, value any, t reflect.Type) differences {
	content, ok := value.(map[string]any)
	if !ok {
		return mismatch(at, value, "a mapping of fields to values")
	}
	fields := jsonFields(t)
	var d differences
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if f, ok := fields[name]; ok {
			d.add(compare(at.Child(name), content[name], f.Type))
			continue
		}
		known := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
		d.unknown = append(d.unknown, unknownField{path: at.Child(name), known: known})
	}
	return d
}

func compareMap(at *field.Path, value any, t reflect.Type) differences {
	content, ok := value.(map[string]any)
	if !ok {
		return mismatch(at, value, "a mapping of names to values")
	}
	var d differences
	for _, key := range slices.Sorted(maps.Keys(content)) {
		d.add(compare(at.Key(key), content[key], t.Elem()))
	}
	return d
}

func compareList(at *field.Path, value any, t reflect.Type) differences {
	content, ok := value.([]any)
	if !ok {
		return mismatch(at, value, "a list")
	}
	var d differences
	for n, element := range content {
		d.add(compare(at.Index(n), element, t.Elem()))
	}
	return d
}

func compareLeaf(at *field.Path, value any, t reflect.Type) differences {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err == nil {
		return differences{}
	}
	return mismatch(at, value, expectation(t))
}

func expectation(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return "a duration with a unit, such as 90s or 15m"
	case t.Kind() == reflect.String:
		return "a string; put it in quotes"
	case t.Kind() == reflect.Bool:
		return "true or false"
	default:
		return fmt.Sprintf("of type %s", t.Kind())
	}
}

func mismatch(at *field.Path, value any, expected string) differences {
	return differences{bad: field.ErrorList{field.Invalid(at, value, "must be "+expected)}}
}

func (d *differences) add(other differences) {
	d.unknown = append(d.unknown, other.unknown...)
	d.bad = append(d.bad, other.bad...)
}

func decodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// jsonFields lists the fields of a struct by their JSON names, those of embedded structs included.
func jsonFields(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(fields, jsonFields(f.Type))
		case name != "" && name != "-":
			fields[name] = f
		}
	}
	return fields
}
