package properties

import (
	"regexp"
	"testing"
	"time"

	"github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// TestSoundConnector is the control: over a CRM that keeps the promise of its
// class, the engine breaks none. So it is with one that says "exists" without the id,
// and with a search that lags by less than the settle time.
func TestSoundConnector(t *testing.T) {
	t.Parallel()
	boxes := map[string]crmsim.Config{
		"exists without id": {Class: crmsim.UniqueCreate, OmitExistingID: true},
		"a lagging search": {Class: crmsim.Lookup, IndexLag: 50 * time.Millisecond,
			Rates: map[crmsim.Fault]float64{crmsim.LookupLags: 1}},
	}
	for _, class := range crm.Classes {
		boxes[string(class)] = crmsim.Config{Class: crmsim.Class(class)}
	}
	for name, config := range boxes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class := crm.Class(config.Class)
			f, runs := hunt(t, sound(openBox(t, config, nil), class), class, 1, 400*time.Millisecond)
			if f != nil {
				t.Fatal(f.text(t.Name()))
			}
			t.Logf("%d runs", runs)
		})
	}
}

// TestTheClassIsDeclared: a connector that counts on less, or on more, is refused.
func TestTheClassIsDeclared(t *testing.T) {
	subject := sound(box{url: "http://127.0.0.1:1"}, crm.Lookup)
	if why := wrongClass(subject, crm.Lookup); why != "" {
		t.Error(why)
	}
	for _, class := range []crm.Class{crm.UniqueCreate, crm.None} {
		if wrongClass(subject, class) == "" {
			t.Errorf("a connector of class lookup passes for %s", class)
		}
	}
}

// TestAConnectorMeetsFaults: calls of the connector meet faults, or all of this shows
// nothing.
func TestAConnectorMeetsFaults(t *testing.T) {
	t.Parallel()
	w, err := openWire(sound(openBox(t, crmsim.Config{Class: crmsim.Lookup}, nil), crm.Lookup).WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	const runs = 40
	if f, _ := (search{draw: w.drawing(crm.Lookup), time: time.Minute, seed: 1, runs: runs}).run(); f != nil {
		t.Fatal(f.text(t.Name()))
	}
	if w.calls < runs || w.beset < runs/2 {
		t.Errorf("%d calls in %d runs, and %d met a fault", w.calls, runs, w.beset)
	}
}

// TestAConnectorThatPauses: one that leaves the CRM alone for an hour after each
// failure, in its own time, is as sound as another.
func TestAConnectorThatPauses(t *testing.T) {
	t.Parallel()
	document, err := restcrm.Document("crmsim")
	if err != nil {
		t.Fatal(err)
	}
	document = regexp.MustCompile(`(?m)^limits: .*`).ReplaceAll(document, []byte("limits: {break_after: 1, break_for: 1h}"))
	definition, err := restcrm.Load("pauses.yaml", document)
	if err != nil {
		t.Fatal(err)
	}
	subject := sound(openBox(t, crmsim.Config{Class: crmsim.UniqueCreate}, nil), crm.UniqueCreate)
	subject.Connect = func(url string) (crm.Connector, error) {
		return restcrm.New(definition, restcrm.Config{BaseURL: url})
	}
	if f, runs := hunt(t, subject, crm.UniqueCreate, 1, 400*time.Millisecond); f != nil {
		t.Fatalf("after %d runs: %s", runs, f.text(t.Name()))
	}
}
