package crmsim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leadonce/leadonce/crmsim"
)

// lived leaves the journal of a CRM that made two leads, removed one and updated or replayed the other.
func lived(t *testing.T, class crmsim.Class, path string) *crm {
	t.Helper()
	sim := newCRM(t, crmsim.Config{Class: class, JournalPath: path})
	ctx := t.Context()
	sim.create(ctx, "e-1", fields{"name": "Ada"}, crmsim.CutAfter)
	sim.create(ctx, "e-2", nil, crmsim.NoFault).want(t, 201, "")
	sim.create(ctx, "e-1", fields{"name": "Ada"}, crmsim.NoFault)
	sim.create(ctx, "e-3", nil, crmsim.CutBefore)
	if err := sim.Remove("L-000002"); err != nil {
		t.Fatal(err)
	}
	if err := sim.Close(); err != nil {
		t.Fatal(err)
	}
	return sim
}

func wantSame(t *testing.T, before, after *crm) {
	t.Helper()
	if !reflect.DeepEqual(before.Effects(), after.Effects()) {
		t.Errorf("leads were %+v, are %+v", before.Effects(), after.Effects())
	}
	if !reflect.DeepEqual(before.Requests(), after.Requests()) {
		t.Errorf("requests were %+v, are %+v", before.Requests(), after.Requests())
	}
	if !reflect.DeepEqual(before.Totals(), after.Totals()) || !reflect.DeepEqual(before.Stats(), after.Stats()) {
		t.Errorf("counts were %+v %+v, are %+v %+v", before.Totals(), before.Stats(), after.Totals(), after.Stats())
	}
}

func TestRestartKeepsLeadsRequestsAndKeys(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crmsim.Class) {
		path := filepath.Join(t.TempDir(), "journal")
		before := lived(t, class, path)
		after := newCRM(t, crmsim.Config{Class: class, JournalPath: path})
		wantSame(t, before, after)
		leads := len(after.Effects())
		after.create(t.Context(), "e-1", fields{"name": "Ada"}, crmsim.NoFault)
		if class == crmsim.Lookup || class == crmsim.None {
			leads++
		}
		after.wantEffects(leads)
	})
}

func TestTornLastLineIsForgottenAndCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	before := lived(t, crmsim.Lookup, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := `{"kind":"created","crm_id":"L-000004","external_id":"` + strings.Repeat("longer than what comes", 100)
	if err := os.WriteFile(path, append(whole, torn...), 0o600); err != nil {
		t.Fatal(err)
	}
	after := newCRM(t, crmsim.Config{Class: crmsim.Lookup, JournalPath: path})
	wantSame(t, before, after)
	if mended, err := os.ReadFile(path); err != nil || string(mended) != string(whole) {
		t.Fatalf("the file was not cut back to its whole lines (%v): %q", err, mended)
	}
	after.create(t.Context(), "e-4", nil, crmsim.NoFault).want(t, 201, "")
	if err := after.Close(); err != nil {
		t.Fatal(err)
	}
	wantSame(t, after, newCRM(t, crmsim.Config{Class: crmsim.Lookup, JournalPath: path}))
}

func TestEveryPrefixOfAJournalLoads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	lived(t, crmsim.Upsert, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for end := range whole {
		cut := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(cut, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		sim, err := crmsim.New(crmsim.Config{Class: crmsim.Upsert, JournalPath: cut})
		if err != nil {
			t.Fatalf("cut at byte %d: %v", end, err)
		}
		if want := strings.Count(string(whole[:end]), `"kind":"request"`+","); len(sim.Requests()) > want {
			t.Fatalf("cut at byte %d: %d requests from %d lines", end, len(sim.Requests()), want)
		}
		if err := sim.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignJournalIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other-class")
	lived(t, crmsim.None, other)
	written, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	opening, rest, _ := strings.Cut(string(written), "\n")
	for name, row := range map[string]struct{ text, want string }{
		"other class": {string(written), "written by class none"},
		"no journal":  {"dear diary\n", "name another file"},
		"one line":    {"dear diary", "name another file"},
		"bad line":    {strings.Replace(string(written), "none", "lookup", 1) + "{\n", "line 14"},
		"lost line":   {strings.Replace(opening, "none", "lookup", 1) + "\n" + rest[strings.Index(rest, "\n")+1:], "line 3"},
	} {
		path := filepath.Join(dir, "journal")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := crmsim.New(crmsim.Config{Class: crmsim.Lookup, JournalPath: path})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want one line with %q", name, err, row.want)
		}
		if left, _ := os.ReadFile(path); string(left) != row.text {
			t.Errorf("%s: the file was changed to %q", name, left)
		}
	}
}

func TestAnswerIsInTheFileBeforeTheClientHasIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	sim := newCRM(t, crmsim.Config{Class: crmsim.Lookup, JournalPath: path})
	sim.create(t.Context(), "e-1", nil, crmsim.NoFault).want(t, 201, "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for line := range strings.Lines(string(text)) {
		var e struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "opened request created answer" {
		t.Fatalf("the file has %s", got)
	}
}

func TestHundredThousandLeadsAreThereAfterARestart(t *testing.T) {
	const n = 100_000
	var text strings.Builder
	text.WriteString(`{"kind":"opened","at":"2026-03-01T12:00:00Z","version":1,"class":"unique_create"}` + "\n")
	for i := range n {
		fmt.Fprintf(&text, `{"kind":"created","at":"2026-03-01T12:00:00Z","external_id":"e-%d","crm_id":"L-%06d"}`+"\n", i+1, i+1)
	}
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	sim := newCRM(t, crmsim.Config{Class: crmsim.UniqueCreate, JournalPath: path})
	sim.wantEffects(n)
	sim.create(t.Context(), "e-77777", nil, crmsim.NoFault).want(t, 409, "already_exists")
	if a := sim.create(t.Context(), "e-100001", nil, crmsim.NoFault); a.body != `{"id":"L-100001"}` {
		t.Fatalf("client saw %d %s", a.status, a.body)
	}
}

// BenchmarkCreate has the journal in a file; its cost must not grow with the leads that exist.
func BenchmarkCreate(b *testing.B) {
	server, err := crmsim.New(crmsim.Config{Class: crmsim.None, JournalPath: filepath.Join(b.TempDir(), "journal")})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	for i := 0; b.Loop(); i++ {
		sendUnheard(server, crmsim.None, i)
	}
}
