package projections

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/job"
)

// TestTheVersionSeesWhatChangesTheRows, so that nobody has to remember it.
func TestTheVersionSeesWhatChangesTheRows(t *testing.T) {
	type grown struct {
		storedState
		Added string
	}
	changed := slices.Clone(models)
	changed[0].derived += "CREATE INDEX more ON jobs (kind);"
	state := reflect.TypeFor[storedState]()
	seen := map[int64]string{fileVersion: "this release"}
	for name, v := range map[string]int64{
		"fold":  versionOf(foldVersion+1, models, state),
		"model": versionOf(foldVersion, models[:len(models)-1], state),
		"index": versionOf(foldVersion, changed, state),
		"state": versionOf(foldVersion, models, reflect.TypeFor[grown]()),
	} {
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s have the same version", name, other)
		}
		seen[v] = name
	}
	if fileVersion <= 0 || fileVersion > 1<<31-1 {
		t.Errorf("the version %d does not fit into a file's header", fileVersion)
	}
}

// TestEveryFieldOfAJobIsAColumn: one that is not would be lost on the way.
func TestEveryFieldOfAJobIsAColumn(t *testing.T) {
	var j Job
	kept := map[any]bool{}
	for _, to := range j.fields() {
		kept[reflect.ValueOf(to).Pointer()] = true
	}
	var check func(v reflect.Value)
	check = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Type() == reflect.TypeFor[Stop]() {
				check(f)
			} else if !kept[f.Addr().Pointer()] {
				t.Errorf("%s.%s has no column", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	check(reflect.ValueOf(&j).Elem())
}

// TestTheStateSurvivesTheFile in every field but the update's text.
func TestTheStateSurvivesTheFile(t *testing.T) {
	var s job.State
	fill(reflect.ValueOf(&s).Elem())
	text, err := encodeState(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeState(text)
	if err != nil {
		t.Fatal(err)
	}
	s.Update, s.Fields = "", ""
	if !reflect.DeepEqual(got, s) {
		t.Errorf("the state comes back as\n  %+v, want\n  %+v", got, s)
	}
}

// fill sets every field to something that is not zero.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(latest))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x\x00ü")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-1 << 62)
	case reflect.Uint64:
		v.SetUint(1<<64 - 1)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default:
		panic("fill a " + v.Type().String())
	}
}
