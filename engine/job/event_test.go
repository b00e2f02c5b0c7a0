package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

// epoch is when the tests' histories begin.
var epoch = time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.UTC)

// jobEventNames reads the event types' names from event.go, so that a new type
// cannot be forgotten.
func jobEventNames(t *testing.T) []string { return eventNames(t, "event.go") }

// jobEvents is one event of every type in event.go, without content.
func jobEvents(t *testing.T) []Event {
	var events []Event
	for _, name := range jobEventNames(t) {
		e, err := Decode(name+".v1", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// eventNames is what the Name methods in a source file return. Each returns one
// literal: a name that is computed could change when a Go type is renamed.
func eventNames(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "Name" {
			continue
		}
		literal, ok := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s: a Name method returns no literal", path)
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, name)
	}
	if len(list) == 0 {
		t.Fatalf("%s has no event types", path)
	}
	return list
}

func TestEveryEventTypeHasOneCurrentWireName(t *testing.T) {
	events := jobEventNames(t)
	for _, path := range []string{"operation.go", "chat.go", "series.go", "reply.go", "bot.go"} {
		events = append(events, eventNames(t, path)...)
	}
	current := map[string]int{}
	for _, w := range wires {
		e, err := w.decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if w.current {
			current[e.Name()]++
		}
		if !slices.Contains(events, e.Name()) {
			t.Errorf("%s makes a %s, which is no event type", w.name, e.Name())
		}
	}
	for _, e := range events {
		if current[e] != 1 {
			t.Errorf("%s has %d current wire names, want one", e, current[e])
		}
	}
	if len(wireByName) != len(wires) {
		t.Errorf("%d rows have %d names: one stands twice", len(wires), len(wireByName))
	}
}

// TestWireNamesAreWrittenOut: a Go type or field that is renamed must not
// change what is in the log.
func TestWireNamesAreWrittenOut(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "codec.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "wires" {
			return true
		}
		for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
			rows++
			if _, ok := row.(*ast.CompositeLit).Elts[0].(*ast.BasicLit); !ok {
				t.Errorf("row %d of wires computes its name", rows)
			}
		}
		return false
	})
	if rows != len(wires) {
		t.Errorf("%d rows were read, want %d", rows, len(wires))
	}
	for _, w := range wires {
		e, _ := w.decode([]byte("{}"))
		for _, field := range reflect.VisibleFields(reflect.TypeOf(e)) {
			if _, tagged := field.Tag.Lookup("json"); !tagged && !field.Anonymous {
				t.Errorf("%T.%s takes its wire name from Go", e, field.Name)
			}
		}
	}
}
