package crmsim

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestJournalThatCannotBeWrittenStopsEveryEffect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	s, err := New(Config{Class: Lookup, JournalPath: path})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), listener) }()

	if status := post(s); status != http.StatusCreated {
		t.Fatalf("client saw %d", status)
	}
	if err := s.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status := post(s); status != http.StatusInternalServerError {
			t.Fatalf("client of a CRM that cannot bear witness saw %d", status)
		}
	}
	if n := len(s.Effects()); n != 1 {
		t.Fatalf("%d leads exist, want the one that was written down", n)
	}
	if err := <-served; !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Serve returned %v", err)
	}
	if err := s.Close(); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("Close returned %v", err)
	}
}

func TestJournalThatIsNoFileIsRefused(t *testing.T) {
	for _, path := range []string{t.TempDir(), os.DevNull} {
		if _, err := New(Config{Class: Lookup, JournalPath: path}); err == nil {
			t.Errorf("a CRM started with the journal %s", path)
		}
	}
}

func post(s *Server) int {
	seen := httptest.NewRecorder()
	s.ServeHTTP(seen, httptest.NewRequest(http.MethodPost, "/leads", strings.NewReader(`{"external_id":"e-1"}`)))
	return seen.Code
}
