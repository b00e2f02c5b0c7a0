package restcrm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/restcrm"
)

// TestCreatedIsA2xx: whatever a rule says, a login page is no lead.
func TestCreatedIsA2xx(t *testing.T) {
	sloppy := strings.Replace(plain(""), "status == 201", "status < 600", 1)
	for status, created := range map[int]bool{200: true, 201: true, 202: true, 302: false, 400: false, 500: false} {
		c := open(t, sloppy, restcrm.Config{Sender: &scripted{answers: []any{answer(status, `{"id":"L-1"}`)}}})
		receipt, err := c.Create(t.Context(), operation("op-1", nil))
		if (err == nil) != created || created != (receipt.CRMID == "L-1") || !created && crm.Classify(err).Outcome != crm.Unknown {
			t.Errorf("HTTP %d: %+v, %v", status, receipt, err)
		}
	}
}

// TestExists: one lead that is found is the receipt; none, several and a lookup
// that fails are unknown.
func TestExists(t *testing.T) {
	for found, want := range map[string]string{
		`[{"ref":"op-1","id":"L-1"}]`:                            "",
		`[{"ref":"op-1","id":"L-1"},{"ref":"op-10","id":"L-2"}]`: "",
		`[]`: "HTTP 409 exists, and the lookup found 0 leads",
		`[{"ref":"op-1","id":"L-1"},{"ref":"op-1","id":"L-2"}]`: "HTTP 409 exists, and the lookup found 2 leads",
		`[{"ref":"op-10","id":"L-2"}]`:                          "HTTP 409 exists, and the lookup found 0 leads",
		`{}`:                                                    "HTTP 409 exists, and the lookup failed: HTTP 200 without a list of leads",
		`[{"ref":"op-1"}]`:                                      "HTTP 409 exists, and the lookup failed: HTTP 200 with a lead that has no id",
	} {
		s := &scripted{answers: []any{answer(409, ""), answer(200, found)}}
		c := open(t, small, restcrm.Config{Sender: s})
		op := operation("op-1", nil)
		receipt, err := c.Create(t.Context(), op)
		if want != "" {
			wantOutcome(t, err, crm.Unknown, want)
		} else if err != nil || receipt != (crm.Receipt{CRMID: "L-1", Existing: true}) {
			t.Errorf("%s: %+v, %v", found, receipt, err)
		}
		if s.count() != 2 {
			t.Fatalf("%s: %d requests", found, s.count())
		}
		if lookup := s.sent[1]; !lookup.Deadline.Equal(op.Deadline) {
			t.Errorf("%s: the lookup ends at %s, and the claim at %s", found, lookup.Deadline, op.Deadline)
		}
	}
}

// TestExistsNeedsAUniqueKey: a file of several classes cannot prove it in those
// that have none.
func TestExistsNeedsAUniqueKey(t *testing.T) {
	several := strings.Replace(small, "class: unique_create", "class: unique_create\nclasses: [lookup, none]", 1)
	for class, want := range map[crm.Class]bool{crm.UniqueCreate: true, crm.Lookup: false, crm.None: false} {
		s := &scripted{answers: []any{answer(409, ""), answer(200, `[{"ref":"op-1","id":"L-1"}]`)}}
		c := open(t, several, restcrm.Config{Class: class, Sender: s})
		if _, err := c.Create(t.Context(), operation("op-1", nil)); (err == nil) != want {
			t.Errorf("class %s: %v", class, err)
		}
		if d := c.Describe(); d.CanFind != (class != crm.None) || d.Class != class {
			t.Errorf("class %s: %+v", class, d)
		}
	}
}

// TestFindChecksFirst: what can be refused without the CRM is.
func TestFindChecksFirst(t *testing.T) {
	s := &scripted{answers: []any{answer(200, "[]")}}
	c := open(t, small, restcrm.Config{Sender: s})
	for id, deadline := range map[string]time.Time{"a/b": soon(), "": soon(), "op-1": time.Now().Add(-1)} {
		if leads, err := c.Find(t.Context(), id, deadline); err == nil {
			t.Errorf("%q: %v", id, leads)
		}
	}
	blind := open(t, plain(""), restcrm.Config{Sender: s})
	_, err := blind.Find(t.Context(), "op-1", soon())
	wantOutcome(t, err, crm.NotSent, "the CRM cannot be searched")
	if s.count() != 0 {
		t.Errorf("%d requests left", s.count())
	}
}

// TestExpressionsStaySmall: what a function makes is bounded, however it is
// nested.
func TestExpressionsStaySmall(t *testing.T) {
	for _, grow := range []string{"b64(", "toJSON("} {
		nested := strings.Repeat(grow, 40) + "op.text" + strings.Repeat(")", 40)
		document := strings.Replace(plain(""), "  outcome:", "  body: {x: {$: '"+nested+"'}}\n  outcome:", 1)
		s := &scripted{answers: []any{done}}
		c := open(t, document, restcrm.Config{Sender: s})
		_, err := c.Create(t.Context(), operation("op-1", map[string]string{"text": strings.Repeat(`"`, 900)}))
		wantOutcome(t, err, crm.Refused, "the create cannot be built: an expression has no value for this")
	}
}

// TestFormsOfRetryAfter: seconds, fractions of them, and the text of a header.
func TestFormsOfRetryAfter(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"wait":3}`: 3 * time.Second, `{"wait":1.5}`: 1500 * time.Millisecond, `{"wait":"4"}`: 4 * time.Second,
		`{"wait":-3}`: 0, `{"wait":null}`: 0, `{"wait":[]}`: 0, `{"wait":"soon"}`: 0, `{"wait":1e300}`: 0, ``: 0,
	} {
		document := strings.Replace(plain(""), "status == 429, is: not_applied", "status == 429, is: not_applied, retry_after: body.wait", 1)
		c := open(t, document, restcrm.Config{Sender: &scripted{answers: []any{answer(429, body)}}})
		_, err := c.Create(t.Context(), operation("op-1", nil))
		if e := crm.Classify(err); e.Outcome != crm.NotApplied || e.RetryAfter != want {
			t.Errorf("%s: %v after %s, want %s", body, e, e.RetryAfter, want)
		}
	}
}
