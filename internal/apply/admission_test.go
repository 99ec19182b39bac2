package apply

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// notAdmission are the status fields that others than kueue-admission write.
var notAdmission = map[string]bool{"ReclaimablePods": true}

// A server-side apply drops what its manager owned and leaves out. So every
// field that a future Kueue adds to the status must be carried on, or be known
// to belong to somebody else.
func TestAdmissionStatusCarriesEveryField(t *testing.T) {
	fields := reflect.TypeFor[kueue.WorkloadStatus]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		wl := &kueue.Workload{}
		fill(t, reflect.ValueOf(&wl.Status).Elem().Field(i))
		out := reflect.ValueOf(admissionStatus(wl).Status).Field(i)
		if carried := !out.IsZero(); carried == notAdmission[name] {
			t.Errorf("status.%s: carried on is %v", name, carried)
		}
	}
}

// fill makes a field differ from its zero value, as far down as omitempty looks.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Elem().Kind() == reflect.Struct {
			fill(t, v.Elem().Field(0))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if c, ok := v.Index(0).Addr().Interface().(*metav1.Condition); ok {
			c.Type = kueue.WorkloadQuotaReserved
		}
	case reflect.Struct:
		fill(t, v.Field(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Int32:
		v.SetInt(1)
	default:
		t.Fatalf("cannot fill a %s", v.Type())
	}
}

func TestAdmissionStatusLeavesOthersConditionsAlone(t *testing.T) {
	wl := &kueue.Workload{Status: kueue.WorkloadStatus{Conditions: []metav1.Condition{
		{Type: kueue.WorkloadQuotaReserved}, {Type: "example.com/Mine"},
	}}}
	got := admissionStatus(wl).Status.Conditions
	if len(got) != 1 || got[0].Type != kueue.WorkloadQuotaReserved {
		t.Errorf("conditions are %v", got)
	}
	if len(wl.Status.Conditions) != 2 || wl.Status.Conditions[1].Type != "example.com/Mine" {
		t.Errorf("the Workload itself was changed: %v", wl.Status.Conditions)
	}
}
