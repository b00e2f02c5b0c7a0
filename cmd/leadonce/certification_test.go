package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/crm"
	"github.com/leadonce/leadonce/engine/crm/crmtest"
)

// certifiedAt puts a report on the configuration's CRM on record.
func certifiedAt(t *testing.T, c config, name string, at time.Time, verdict crmtest.Verdict, change func(*certification)) {
	t.Helper()
	connector, err := newConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	who := identify(connector)
	report := certification{Connector: "crmsim", Host: who.host, Time: at, Classes: []certifiedClass{{
		Class: crm.Class(c.CRM.Class), Digest: who.digest, Verdict: verdict,
		Steps: []certifiedStep{{Verdict: verdict, Why: "the reason"}},
	}}}
	if change != nil {
		change(&report)
	}
	if err := report.save(filepath.Join(recordDir(c), name)); err != nil {
		t.Fatal(err)
	}
}

// TestNewestCertification: the time in the report counts, not the name of its file,
// and what is on record about another connector says nothing.
func TestNewestCertification(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		record func(t *testing.T, c config)
		want   string // part of the refusal; "" when it is certified
	}{
		"none": {func(*testing.T, config) {}, "has no report on it"},
		"held": {func(t *testing.T, c config) { certifiedAt(t, c, "a.json", noon, crmtest.Held, nil) }, ""},
		"broken since": {func(t *testing.T, c config) {
			certifiedAt(t, c, "a.json", noon, crmtest.Held, nil)
			certifiedAt(t, c, "b.json", noon.Add(time.Hour), crmtest.Broken, nil)
			certifiedAt(t, c, "c.json", noon.Add(-time.Hour), crmtest.Held, nil)
		}, "was broken in the newest certification, of 2026-03-01 13:00:00Z: the reason"},
		"mended since": {func(t *testing.T, c config) {
			certifiedAt(t, c, "a.json", noon, crmtest.Broken, nil)
			certifiedAt(t, c, "b.json", noon.Add(time.Hour), crmtest.Held, nil)
			certifiedAt(t, c, "c.json", noon.Add(-time.Hour), crmtest.Broken, nil)
		}, ""},
		"of tomorrow": {func(t *testing.T, c config) {
			certifiedAt(t, c, "a.json", time.Now().Add(24*time.Hour), crmtest.Held, nil)
			certifiedAt(t, c, "b.json", noon, crmtest.Broken, nil)
		}, "which is to come"},
		"not shown": {func(t *testing.T, c config) { certifiedAt(t, c, "a.json", noon, crmtest.NotShown, nil) }, "was not shown in"},
		"another host": {func(t *testing.T, c config) {
			certifiedAt(t, c, "a.json", noon, crmtest.Held, func(r *certification) { r.Host = "crm.example:443" })
		}, "has no report on it"},
		"another settle time, and newer": {func(t *testing.T, c config) {
			c.CRM.Settle++
			certifiedAt(t, c, "a.json", noon, crmtest.Held, nil)
		}, "the newest report, of 2026-03-01 12:00:00Z, is on another description, class, settle time or variable"},
		"another class has broken since": {func(t *testing.T, c config) {
			certifiedAt(t, c, "a.json", noon, crmtest.Held, nil)
			c.CRM.Class = "upsert"
			certifiedAt(t, c, "b.json", noon.Add(time.Hour), crmtest.Broken, nil)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := defaultConfig()
			config.DataDir = t.TempDir()
			config.CRM = crmConfig{Connector: "crmsim", URL: "http://user:canary@127.0.0.1:1", Class: "unique_create"}
			c.record(t, config)
			got, err := config.checkTrust()
			if c.want == "" && (err != nil || !got.certified) {
				t.Errorf("refused: %v", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary")) {
				t.Errorf("%v, want %q", err, c.want)
			}
			config.CRM.TrustDeclared = true
			got, err = config.checkTrust()
			if err != nil || got.certified != (c.want == "") || !got.certified && !strings.HasSuffix(got.text, "; trusted as declared") {
				t.Errorf("told to trust: %+v, %v", got, err)
			}
		})
	}
}
