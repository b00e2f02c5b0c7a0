package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leadonce/leadonce/engine/audit"
	"github.com/leadonce/leadonce/engine/eventlog"
	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// faulty is a log whose own check finds fault.
type faulty struct {
	eventlog.Log
	fault error
}

func (l faulty) Check(context.Context) error { return l.fault }

// What a log's own check finds is a finding, and the events are read all the same.
func TestAuditAsksTheLogToCheckItself(t *testing.T) {
	log := memory.New()
	_, err := log.Append(t.Context(), "update-1-1", eventlog.Any,
		eventlog.Proposed{ID: eventlog.EventID{1}, Type: "Unheard.v9", Time: time.Now(), Data: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	c := config{DataDir: t.TempDir()}
	r, err := verify(t.Context(), c, faulty{log, errors.New("page 7 is torn")}, "", io.Discard)
	if err != nil || len(r.Findings) != 2 ||
		r.Findings[0] != (audit.Finding{Kind: audit.Damaged, Subject: "log", Detail: "page 7 is torn"}) ||
		r.Findings[1].Kind != audit.Undecodable {
		t.Errorf("findings %v, error %v", r.Findings, err)
	}
	if r, err = verify(t.Context(), c, faulty{log, nil}, "", io.Discard); err != nil || len(r.Findings) != 1 {
		t.Errorf("the log is whole: findings %v, error %v", r.Findings, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err = verify(ctx, c, faulty{log, ctx.Err()}, "", io.Discard); !errors.Is(err, context.Canceled) || len(r.Findings) > 0 {
		t.Errorf("the check is cancelled: findings %v, error %v", r.Findings, err)
	}
}

// A snapshot that cannot be read says nothing about the log, and that is said.
func TestAuditWithASnapshotThatCannotBeRead(t *testing.T) {
	c := config{DataDir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(c.DataDir, snapshotFile), 0o700); err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	r, err := verify(t.Context(), c, memory.New(), "", &notes)
	if err != nil || len(r.Findings) > 0 || !strings.Contains(notes.String(), "the log is not compared with it") {
		t.Errorf("findings %v, error %v, notes %q", r.Findings, err, notes.String())
	}
}

// A CRM that does not answer, or not to the end, does not hold the audit up.
func TestAuditDoesNotWaitForTheCRM(t *testing.T) {
	done := make(chan struct{})
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, `[{"external_id": "a", `)
			w.(http.Flusher).Flush()
		}
		<-done
	}))
	defer crm.Close()
	defer close(done)
	for _, path := range []string{"/none", "/half"} {
		_, err := fetchLeads(t.Context(), &http.Client{Timeout: 100 * time.Millisecond}, crm.URL+path)
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() || strings.Contains(err.Error(), "not a JSON array") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// The list as it is afterwards is missing: then no lead is lost.
func TestAuditWithoutTheListAfterwards(t *testing.T) {
	asked := 0
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked > 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = io.WriteString(w, `[{"external_id": "a", "crm_id": "L-1"}]`)
	}))
	defer crm.Close()
	r, err := verify(t.Context(), config{DataDir: t.TempDir()}, memory.New(), crm.URL, io.Discard)
	if err == nil || len(r.Findings) > 0 {
		t.Errorf("findings %v, error %v", r.Findings, err)
	}
}
