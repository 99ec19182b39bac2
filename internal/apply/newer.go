package apply

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// A newer Kueue may own fields of a Workload's status, and conditions, that this Ferry does not know. They are told from
// the Workload's managedFields. Then, and only then, a Workload is read live before its status is applied.

// Strip drops the managedFields of a cached Workload, but for kueueAdmission's if it owns what we do not know.
func Strip(wl *kueue.Workload) {
	kept := wl.ManagedFields
	wl.ManagedFields = nil
	for _, entry := range kept {
		if fields := ownedStatus(entry); fields != nil && !known(fields, statusType) {
			wl.ManagedFields = append(wl.ManagedFields, entry)
		}
	}
}

var (
	statusType    = reflect.TypeFor[kueue.WorkloadStatus]()
	conditionType = reflect.TypeFor[metav1.Condition]()
)

// ownedStatus is what kueueAdmission owns of a status, in the form of managedFields; nil for an entry of somebody else.
func ownedStatus(entry metav1.ManagedFieldsEntry) map[string]any {
	if entry.Manager != kueueAdmission || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
		return nil
	}
	var fields map[string]any
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	status, _ := fields["f:status"].(map[string]any)
	return status
}

// known tells whether a type has all of these fields.
func known(fields map[string]any, in reflect.Type) bool {
	for key, inner := range fields {
		t, found := typeOf(key, in)
		if more, _ := inner.(map[string]any); !found || t != nil && !known(more, t) {
			return false
		}
	}
	return true
}

// typeOf is the type of a field, or of an item of a list, that managedFields name; nil for what has no inner fields.
func typeOf(key string, in reflect.Type) (t reflect.Type, found bool) {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	name, isField := strings.CutPrefix(key, "f:")
	switch {
	case !isField && in.Kind() == reflect.Slice && strings.HasPrefix(key, "k:"):
		return in.Elem(), in.Elem() != conditionType || slices.Contains(admissionConditions, keysOf(key)["type"].(string))
	case !isField, in.Kind() == reflect.Map:
		return nil, true
	case in.Kind() != reflect.Struct:
		return nil, false
	}
	for i := range in.NumField() {
		if tag, _, _ := strings.Cut(in.Field(i).Tag.Get("json"), ","); tag == name {
			return in.Field(i).Type, true
		}
	}
	return nil, false
}

// keysOf are the fields that tell an item of a list, of `k:{"type":"Evicted"}`.
func keysOf(key string) map[string]any {
	keys := map[string]any{}
	// What cannot be read names nothing that we know.
	_ = json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &keys)
	if _, isType := keys["type"].(string); !isType {
		keys["type"] = ""
	}
	return keys
}

// carry puts into out what is owned of live and is of no field that a type has; what the type has is there already.
func carry(fields map[string]any, in reflect.Type, live, out map[string]any) {
	for key, inner := range fields {
		name := strings.TrimPrefix(key, "f:")
		value, isThere := live[name]
		if name == key || !isThere {
			continue
		}
		more, _ := inner.(map[string]any)
		switch t, found := typeOf(key, in); {
		case !found:
			out[name] = value
		case t != nil:
			out[name] = carryInto(more, t, value, out[name])
		}
		if out[name] == nil {
			delete(out, name) // we leave it out on purpose
		}
	}
}

func carryInto(fields map[string]any, in reflect.Type, live, out any) any {
	switch l := live.(type) {
	case map[string]any:
		if o, is := out.(map[string]any); is {
			carry(fields, in, l, o)
		}
	case []any:
		return carryItems(fields, in, l, out)
	}
	return out
}

func carryItems(fields map[string]any, in reflect.Type, live []any, out any) any {
	items, _ := out.([]any)
	for key, inner := range fields {
		if !strings.HasPrefix(key, "k:") {
			continue
		}
		t, found := typeOf(key, in)
		from, to := itemOf(live, key), itemOf(items, key)
		more, _ := inner.(map[string]any)
		switch {
		case from == nil:
		case !found && to == nil:
			items = append(items, from)
		case t != nil && to != nil:
			carry(more, t, from, to)
		}
	}
	if len(items) == 0 {
		return out
	}
	return items
}

// itemOf finds the item of a list that has these keys; nil when it is not there.
func itemOf(list []any, key string) map[string]any {
	var keys map[string]any
	if json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &keys) != nil {
		return nil
	}
	for _, item := range list {
		m, isMap := item.(map[string]any)
		is := isMap
		for name, value := range keys {
			is = is && m[name] == value
		}
		if is {
			return m
		}
	}
	return nil
}
