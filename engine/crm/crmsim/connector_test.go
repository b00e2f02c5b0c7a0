package crmsim_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	sim "github.com/leadonce/leadonce/crmsim"
	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmsim"
)

func TestConfigMistakes(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct {
		config crmsim.Config
		key    string
	}{
		{crmsim.Config{Class: crm.Lookup}, "crm.url"},
		{crmsim.Config{URL: "http://ann:" + secret + "@host:port/", Class: crm.Lookup}, "crm.url"},
		{crmsim.Config{URL: "ftp://ann:" + secret + "@host", Class: crm.Lookup}, "crm.url"},
		{crmsim.Config{URL: "http://host/?token=" + secret, Class: crm.Lookup}, "crm.url"},
		{crmsim.Config{URL: "http://host/%zz" + secret, Class: crm.Lookup}, "crm.url"},
		{crmsim.Config{URL: "http://host"}, "crm.class"},
		{crmsim.Config{URL: "http://host", Class: "magic"}, "crm.class"},
		{crmsim.Config{URL: "http://host", Class: crm.Lookup, Settle: -1}, "crm.settle"},
		{crmsim.Config{URL: "http://host", Class: crm.Lookup, KeyValidity: -1}, "crm.key_validity"},
	} {
		_, err := crmsim.New(c.config)
		if err == nil || !strings.Contains(err.Error(), c.key) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want one that names %s", c.config, err, c.key)
		}
	}
}

func TestDescription(t *testing.T) {
	for _, class := range crm.Classes {
		c, err := crmsim.New(crmsim.Config{URL: "http://host", Class: class})
		if err != nil {
			t.Fatal(err)
		}
		want := crm.Description{Name: "crmsim", Class: class, Settle: 30 * time.Second, CanFind: class != crm.None}
		if class == crm.IdempotencyKey {
			want.KeyValidity = 24 * time.Hour
		}
		if got := c.Describe(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestKeyHeader: the key is sent in the class that has one, and in no other.
func TestKeyHeader(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		w := newWorld(t, setup{class: class})
		key, _ := w.deliver(1)
		w.run()
		w.wantDone(key)
		want := ""
		if class == crm.IdempotencyKey {
			want = operationID(key)
		}
		if got := w.crm.Requests()[0].Key; got != want {
			t.Errorf("the key was %q, want %q", got, want)
		}
	})
}

// TestHostileOperationIDs never reach the CRM: in a path they would be another
// address, and in an index another id.
func TestHostileOperationIDs(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		box := newSandbox(t, sim.Config{Class: sim.Class(class)})
		c, err := crmsim.New(crmsim.Config{URL: box.url, Class: class})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"", ".", "..", "a/b", "../login", "a b", "a%2Fb", "é", "a\x00", "a\n", "a?b", "a.inc", strings.Repeat("a", 201)} {
			deadline := time.Now().Add(10 * time.Second)
			_, err := c.Create(t.Context(), crm.Operation{ID: id, Deadline: deadline})
			if crm.Classify(err).Outcome != crm.Refused {
				t.Errorf("create %q: %v", id, err)
			}
			var e *crm.Error
			if leads, err := c.Find(t.Context(), id, deadline); !errors.As(err, &e) {
				t.Errorf("find %q: %v, %v", id, leads, err)
			}
		}
		if n := len(box.Requests()); n != 0 {
			t.Errorf("%d requests reached the CRM", n)
		}
	})
}

// TestURLForms: a slash at the end and a password make no difference.
func TestURLForms(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		box := newSandbox(t, sim.Config{Class: sim.Class(class)})
		u, err := url.Parse(box.url)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("ann", "hunter2")
		for _, path := range []string{"", "/"} {
			u.Path = path
			c, err := crmsim.New(crmsim.Config{URL: u.String(), Class: class})
			if err != nil {
				t.Fatal(err)
			}
			op := crm.Operation{ID: "e-1" + strings.ReplaceAll(path, "/", "-"), Deadline: time.Now().Add(10 * time.Second)}
			if r, err := c.Create(t.Context(), op); err != nil || r.CRMID == "" || r.Existing {
				t.Errorf("%q: %+v, %v", path, r, err)
			}
		}
	})
}

// TestRefusals: what validation refuses is refused in every class.
func TestRefusals(t *testing.T) {
	forEveryClass(t, func(t *testing.T, class crm.Class) {
		box := newSandbox(t, sim.Config{Class: sim.Class(class)})
		c, err := crmsim.New(crmsim.Config{URL: box.url, Class: class})
		if err != nil {
			t.Fatal(err)
		}
		for reason, fields := range map[string]map[string]string{
			"HTTP 422 validation":                     {"reject": "yes"},
			"HTTP 409 look_alike":                     {"look_alike": "L-000001"},
			"the lead is larger than the CRM's 1 MiB": {"text": strings.Repeat("x", 1<<20)},
		} {
			_, err := c.Create(t.Context(), crm.Operation{ID: "e-1", Fields: fields, Deadline: time.Now().Add(10 * time.Second)})
			if e := crm.Classify(err); e.Outcome != crm.Refused || e.Reason != reason {
				t.Errorf("%v, want refused: %s", err, reason)
			}
		}
		if n := len(box.Effects()); n != 0 {
			t.Errorf("%d leads", n)
		}
	})
}

// TestOnlyItsOwnSuccess: 200 with an id is what an upsert answers for a lead
// that was there; for another class the protocol knows no such answer.
func TestOnlyItsOwnSuccess(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"L-1"}`))
	}))
	defer web.Close()
	for _, class := range crm.Classes {
		c, err := crmsim.New(crmsim.Config{URL: web.URL, Class: class})
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := c.Create(t.Context(), crm.Operation{ID: "e-1", Deadline: time.Now().Add(10 * time.Second)})
		if updated := receipt == (crm.Receipt{CRMID: "L-1", Existing: true}) && err == nil; updated != (class == crm.Upsert) {
			t.Errorf("class %s: %+v, %v", class, receipt, err)
		}
	}
}

// TestExistsTwice: "exists" without an id, and two leads to choose from, is no
// receipt.
func TestExistsTwice(t *testing.T) {
	for leads, want := range map[string]string{
		list(lead("L-1", "e-1"), lead("L-2", "e-1")):  "",
		list(lead("L-1", "e-10")):                     "",
		list(lead("L-1", "e-10"), lead("L-2", "e-1")): "L-2",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = w.Write([]byte(leads))
				return
			}
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(code("already_exists")))
		}))
		defer web.Close()
		for _, class := range crm.Classes {
			c, err := crmsim.New(crmsim.Config{URL: web.URL, Class: class})
			if err != nil {
				t.Fatal(err)
			}
			receipt, err := c.Create(t.Context(), crm.Operation{ID: "e-1", Deadline: time.Now().Add(10 * time.Second)})
			if want != "" && class == crm.UniqueCreate {
				if err != nil || receipt != (crm.Receipt{CRMID: want, Existing: true}) {
					t.Errorf("%+v, %v; want %s", receipt, err, want)
				}
			} else if err == nil || crm.Classify(err).Outcome != crm.Unknown {
				t.Errorf("class %s, %s: %+v, %v; want unknown", class, leads, receipt, err)
			}
		}
	}
}

// TestExistsLookupInTime: the lookup behind "exists" ends with the create's
// deadline, for the claim is over after it.
func TestExistsLookupInTime(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(code("already_exists")))
	}))
	defer web.Close()
	c, err := crmsim.New(crmsim.Config{URL: web.URL, Class: crm.UniqueCreate})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = c.Create(ctx, crm.Operation{ID: "e-1", Deadline: time.Now().Add(200 * time.Millisecond)})
	if e := crm.Classify(err); e.Outcome != crm.Unknown || ctx.Err() != nil {
		t.Fatalf("%v, context: %v", err, ctx.Err())
	}
}
