package restcrm_test

import (
	"os"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/properties"
)

// TestTheEngineKeepsItsPromisesOverIt, while processes die and the wire lies. A class
// takes some seconds; LEADONCE_PROPERTIES_TIME asks for all of them, and for how long.
func TestTheEngineKeepsItsPromisesOverIt(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds for each class")
	}
	classes := []crm.Class{crm.UniqueCreate, crm.Lookup}
	if os.Getenv("LEADONCE_PROPERTIES_TIME") != "" {
		classes = crm.Classes
	}
	for _, class := range classes {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			s := subject(t, class, newSandbox(t, sim.Config{Class: sim.Class(class)}))
			s.Short = 200 * time.Millisecond
			properties.CheckConnector(t, s, class)
		})
	}
}
